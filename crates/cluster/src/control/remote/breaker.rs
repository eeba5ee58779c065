//! What a worker has and the hub does not know, when the worker was just listed (spec/dispatch.md §9).
//!
//! The durable intent to delete is absence on the hub. But a hub that was restored from a backup misses much at once; then
//! nothing is deleted there before a person says so.

use ::dispatch::{Listed, orphans};
use ::jobs::dispatched::epoch;
use crds::names::annotations::CLEANUP;
use runtime::watch::Key;

use super::{Control, Remote};
use crate::control::due::What;

impl Control {
    /// Compares a worker with the hub when its first lists are complete.
    pub(super) fn sweep_if_new(&mut self, name: &str, before: bool) {
        let Some(remote) = self.remotes.get_mut(name).filter(|one| !before && one.is_listed())
        else {
            return;
        };
        let workloads = &self.workloads;
        let on_hub = |name: &str| {
            let (namespace, name) = name.split_once('/')?;
            let key = Key { namespace: Some(namespace.into()), name: name.into() };
            workloads.get(&key).map(|record| ::index::epoch(record.object()))
        };
        let first = !std::mem::replace(&mut remote.swept, true);
        let sweep = orphans(&remote.listed(), on_hub, first.then_some(workloads.len()));
        let n_orphans = sweep.orphans.len();
        // Who was asked is asked until there is nothing left to ask about, however often the link comes and goes.
        remote.tripped = sweep.tripped || remote.tripped && n_orphans > 0;
        remote.n_orphans = n_orphans;
        self.due.now(What::Clusters);
        // What is not in the lists is known now not to be there.
        self.all_workloads_due();
        if sweep.tripped {
            tracing::error!(
                cluster = name,
                n_orphans,
                "the worker has much that this manager does not know; annotate the MultiKueueCluster with {CLEANUP}=confirmed to delete it"
            );
        }
    }

    /// Whether what a Workload left on workers must stay: its worker's breaker has tripped, and nobody has said otherwise.
    pub(super) fn breaker_holds(&self, key: &Key) -> bool {
        let mut concerned = self.remotes.iter().filter(|(_, remote)| remote.concerns(key));
        concerned.any(|(name, remote)| remote.tripped && !self.clusters.cleanup_confirmed(name))
    }

    /// What has to be looked at again when a person has confirmed a cleanup.
    pub(in crate::control) fn left_behind_due(&mut self) {
        let seen = self.remotes.values().filter(|remote| remote.tripped);
        let seen = seen.flat_map(|remote| remote.clones.objects.keys().chain(remote.job_of.keys()));
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

    fn listed(&self) -> Vec<Listed> {
        let clones = self.clones.objects.iter();
        let clones = clones.map(|(key, held)| (key, epoch(&held.object.metadata)));
        let jobs = self.job_of.iter().filter_map(|(workload, job)| {
            Some((workload, epoch(&self.jobs.objects.get(job)?.object.metadata)))
        });
        let all = clones.chain(jobs);
        all.map(|(key, epoch)| Listed { workload: key.to_string().into(), epoch }).collect()
    }
}
