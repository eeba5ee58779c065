//! Dispatched jobs whose Workload was taken away by force, with its finalizer, before anything was withdrawn.
//!
//! The status of such a job is a copy that nobody brings up to date any more: it would show active pods for ever, and get
//! no other Workload. It is told that nothing runs when that is so on the worker that had it. After a restart nobody knows
//! which one that was, and so all of them count, also those that cannot be reached, until they are lost.

use std::collections::{BTreeMap, BTreeSet};

use ::dispatch::workload::LocalWorkload;
use ::jobs::{GenericJob, Job, construct_workload::workload_name_for};
use crds::v1beta2::Workload;
use engine::ids::ClusterId;
use runtime::watch::Key;

use super::{Control, due::What};

/// Such jobs, by the Workload that they had.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    jobs: BTreeMap<Key, Orphan>,
}

#[derive(Debug)]
struct Orphan {
    job: Key,
    /// Who may have a copy by the last that was seen of the Workload; nobody if it was never seen.
    clusters: Vec<Box<str>>,
}

impl Orphans {
    /// The Workloads that they had.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &Key> {
        self.jobs.keys()
    }

    pub(crate) fn contains(&self, workload: &Key) -> bool {
        self.jobs.contains_key(workload)
    }
}

impl Control {
    /// Notes whether a job is one of these. `named` is the Workload that it names itself.
    pub(super) fn note_orphan(&mut self, key: &Key, job: &Job, named: Option<&Key>) {
        let workload = named.cloned().unwrap_or_else(|| {
            let name = workload_name_for(job, self.settings.jobs);
            Key { namespace: key.namespace.clone(), name: name.into() }
        });
        let has_another = self.jobs.owns_any(key) || self.workloads.contains_key(&workload);
        let runs = job.is_managed_elsewhere() && job.is_active() && job.finished().is_none();
        if has_another || !runs {
            self.orphans.jobs.remove(&workload);
        } else {
            let taken = self.jobs.taken_from(key);
            let new =
                || Orphan { job: key.clone(), clusters: taken.map(chosen).unwrap_or_default() };
            self.orphans.jobs.entry(workload.clone()).or_insert_with(new);
            self.due.now(What::Workload(workload));
        }
    }

    /// Which workers count is decided anew.
    pub(super) fn all_orphans_due(&mut self) {
        self.due.workloads.extend(self.orphans.workloads().cloned());
    }

    /// A job is not there any more.
    pub(super) fn forget_orphan(&mut self, job: &Key) {
        self.orphans.jobs.retain(|_, one| one.job != *job);
    }

    /// The job of a Workload that is not there any more.
    pub(super) fn orphan(&self, workload: &Key) -> Option<(&Key, &Job)> {
        self.jobs.get(&self.orphans.jobs.get(workload)?.job)
    }

    /// The hub's side of a Workload that is not there: what is gone holds nothing.
    pub(super) fn hub_without(&mut self, workload: &Key) -> LocalWorkload {
        let Some(job) = self.orphan(workload).map(|(_, job)| super::remote::hub_job(job)) else {
            return LocalWorkload::default();
        };
        let had = self.orphans.jobs.get(workload).map(|one| one.clusters.as_slice());
        let nominated = match had {
            Some(had) if !had.is_empty() => {
                had.iter().map(|name| self.fleet.cluster(name)).collect()
            }
            _ => self.every_worker().into_iter().collect(),
        };
        LocalWorkload {
            create_sent: true,
            nominated_clusters: nominated,
            job,
            ..LocalWorkload::default()
        }
    }

    fn every_worker(&mut self) -> BTreeSet<ClusterId> {
        let registered = self.clusters.names().map(|name| self.fleet.cluster(name));
        let known = self.remotes.values().map(|remote| remote.id);
        registered.chain(known).collect()
    }
}

/// The clusters that a Workload was sent to.
fn chosen(workload: &Workload) -> Vec<Box<str>> {
    let status = &workload.status;
    let all = status.nominated_cluster_names.iter().chain(&status.cluster_name);
    all.map(|name| name.as_str().into()).collect()
}
