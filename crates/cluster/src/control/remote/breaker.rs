//! What a worker has and the hub does not know (docs/reference/dispatch.md §9).
//!
//! The durable intent to delete is absence on the hub. But a hub that was restored from a backup misses much at once; then
//! nothing is deleted there before a person says so. So whenever much may be found at once, it is counted before anything
//! is decided: when a worker was listed, when all Workloads of the hub were, and when a new list of either shows what no watch has
//! told. In between each copy is decided about when it, or the hub's Workload, changes; every gcInterval all are
//! compared, so that nothing that was passed over stays.
//!
//! Cost: one look at every copy per list and interval, and one decision for each that is found.

use ::dispatch::{ListedCopy, OrphanScan, find_orphans};
use ::jobs::remote_objects::epoch;
use crds::names::annotations::CLEANUP;
use jiff::Timestamp;
use runtime::watch::Key;

use super::{Control, Remote};
use crate::control::{Subject, due::What, held::after};

impl Control {
    /// Compares a worker with the hub when a list was heard, of either. Without both nothing can be said.
    pub(super) fn sweep(&mut self, name: &str) {
        let Some(remote) = self.remotes.get(name).filter(|one| one.is_listed()) else {
            return;
        };
        if !self.awaited.is_empty() {
            return;
        }
        let first = !remote.swept;
        let sweep = self.compare(remote, first.then_some(self.workloads.len()));
        let n_orphans = sweep.orphans.len();
        if let Some(remote) = self.remotes.get_mut(name) {
            remote.swept = true;
            // Who was asked is asked until there is nothing left to ask about, however often the link comes and goes.
            remote.tripped = sweep.breaker_tripped || remote.tripped && n_orphans > 0;
            remote.n_orphans = n_orphans;
        }
        self.due.now(What::Clusters);
        // What is not in the lists is known now not to be there.
        self.all_workloads_due();
        if sweep.breaker_tripped {
            tracing::error!(
                cluster = name,
                n_orphans,
                "the worker has much that this manager does not know; annotate the MultiKueueCluster with {CLEANUP}=confirmed to delete it"
            );
        }
    }

    /// The same of every worker.
    pub(in crate::control) fn sweep_all(&mut self) {
        let names: Vec<Box<str>> = self.remotes.keys().cloned().collect();
        names.iter().for_each(|name| self.sweep(name));
    }

    /// Every gcInterval: whatever a worker has and the hub does not want is decided about again. All of it was counted when it was
    /// first seen.
    pub(in crate::control) fn collect_garbage(&mut self, now: Timestamp) {
        let Some(interval) = self.settings.gc_interval else {
            return;
        };
        if self.garbage_at.is_some_and(|at| at > now) {
            return;
        }
        let next = after(now, interval);
        self.due.at(next, What::Garbage);
        if self.garbage_at.replace(next).is_some() {
            let names: Vec<Box<str>> = self.remotes.keys().cloned().collect();
            names.iter().for_each(|name| self.look_over(name));
        }
    }

    fn look_over(&mut self, name: &str) {
        let Some(remote) = self.remotes.get(name).filter(|one| one.is_listed()) else {
            return;
        };
        let found = self.compare(remote, None).orphans;
        if let Some(remote) = self.remotes.get_mut(name) {
            remote.tripped &= !found.is_empty();
            if std::mem::replace(&mut remote.n_orphans, found.len()) != found.len() {
                self.due.now(What::Clusters);
            }
        }
        for (workload, _) in found {
            self.due.workloads.extend(key(&workload));
        }
    }

    fn compare(&self, remote: &Remote, n_on_hub: Option<usize>) -> OrphanScan {
        let on_hub = |name: &str| {
            self.workloads.get(&key(name)?).map(|record| ::index::epoch(record.object()))
        };
        find_orphans(&remote.listed(), on_hub, n_on_hub)
    }

    /// Whether what a Workload left on workers must stay: its worker's breaker has tripped, and nobody has said otherwise.
    pub(super) fn breaker_holds(&self, key: &Key) -> bool {
        let mut concerned = self.remotes.iter().filter(|(_, remote)| remote.concerns(key));
        concerned.any(|(name, remote)| remote.tripped && !self.clusters.cleanup_confirmed(name))
    }

    /// What has to be looked at again when a person has confirmed a cleanup.
    pub(in crate::control) fn left_behind_due(&mut self) {
        let seen = self.remotes.values().filter(|remote| remote.tripped);
        let seen = seen.flat_map(|remote| {
            remote.clones.objects.keys().chain(remote.naming.all().map(|(clone, _)| clone))
        });
        for key in seen.cloned().collect::<Vec<_>>() {
            self.due.now(What::Workload(key));
        }
    }
}

impl Remote {
    /// The message of the worker's condition: how the link is, and what a person is asked.
    pub(in crate::control) fn said(&self, confirmed: bool) -> String {
        let (message, n_orphans) = (&self.link.message, self.n_orphans);
        if !self.tripped || confirmed || !self.link.active {
            return message.clone();
        }
        format!(
            "{message}; it has copies of {n_orphans} workloads that are not known here, which stay until the annotation {CLEANUP}=confirmed is set"
        )
    }

    fn listed(&self) -> Vec<ListedCopy> {
        let clones = self.clones.objects.iter();
        let clones = clones.map(|(key, held)| (key, epoch(&held.object.metadata)));
        let jobs = self.naming.all().filter_map(|(workload, job)| {
            Some((workload, epoch(&self.jobs.objects.get(job)?.object.metadata)))
        });
        let listed = |(key, epoch): (&Key, u64)| {
            let (workload, leaving) = (key.to_string().into(), self.is_leaving(key));
            ListedCopy { workload, epoch, deleting: leaving }
        };
        clones.chain(jobs).map(listed).collect()
    }

    /// Whether something is being removed of what a Workload has here.
    fn is_leaving(&self, key: &Key) -> bool {
        let job = self.naming.job_of(key);
        let clone = self.clones.objects.get(key).map(|held| &held.object.metadata);
        let of_job = job.and_then(|job| self.jobs.objects.get(job));
        let mut seen = clone.into_iter().chain(of_job.map(|held| &held.object.metadata));
        let sent = |subject, key: &Key| self.sent.contains_key(&(subject, key.clone()));
        seen.any(|metadata| metadata.deletion_timestamp.is_some())
            || clone.is_some() && sent(Subject::Workload, key)
            || job.is_some_and(|job| sent(Subject::Job, job))
    }
}

/// Of `namespace/name`.
fn key(name: &str) -> Option<Key> {
    let (namespace, name) = name.split_once('/')?;
    Some(Key { namespace: Some(namespace.into()), name: name.into() })
}
