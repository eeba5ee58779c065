//! The other replicas of a set: one copy on one cluster makes the pods of all of them (docs/reference/multikueue.md §2.4, §2.7).

use std::sync::Arc;

use ::jobs::{replicas::replica_of, set_copies};
use crds::v1beta2::Workload;
use dispatch::{ClusterRace, Fleet};
use runtime::watch::Key;

use super::hub_jobs::jobs_of;
use crate::control::{
    job_key::JobKey,
    jobs::Jobs,
    workloads::{TrackedWorkload, WorkloadChange, Workloads},
};

/// The sets that a Workload was a replica of until this change. It may be the last that needs their copies, and the Workload that
/// a copy names, which deletes it, may be gone before.
pub(crate) fn sets_left(change: &WorkloadChange, jobs: &Jobs) -> Vec<JobKey> {
    let lives = |one: &Arc<Workload>| one.metadata.deletion_timestamp.is_none();
    let newest = change.after.as_ref().or(change.before.as_ref());
    let leaves = !change.after.as_ref().is_some_and(lives);
    let replica = newest.filter(|one| leaves && replica_of(one).is_some());
    replica.map(|one| jobs.sets_of(&change.key, one).collect()).unwrap_or_default()
}

/// What the siblings of a Workload are found by.
#[derive(Clone, Copy)]
pub(crate) struct SetSiblings<'a> {
    pub(crate) key: &'a Key,
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
}

impl<'a> SetSiblings<'a> {
    /// Other Workloads of a set that hold quota.
    fn holding(self, set: &JobKey) -> impl Iterator<Item = &'a TrackedWorkload> {
        let others = self.jobs.owned_workloads(set).filter(move |key| *key != self.key);
        let records: Vec<_> = others.filter_map(|key| self.workloads.get(key)).collect();
        records.into_iter().filter(|one| one.phase().holds_quota() && !one.phase().is_evicted())
    }

    /// The set that the Workload is a replica of, if all replicas share one copy.
    fn set(self) -> Option<&'a JobKey> {
        let jobs = jobs_of(self.key, self.workloads, self.jobs);
        jobs.into_iter().find(|(_, job)| set_copies::is_shared(*job)).map(|(set, _)| set)
    }

    /// The cluster of another Workload of a set.
    fn recorded(self, set: &JobKey) -> Option<&'a str> {
        self.holding(set).find_map(|one| one.object().status.cluster_name.as_deref())
    }

    /// Whether the Workload goes where another one of its set is recorded.
    pub(crate) fn follow(self) -> bool {
        self.set().is_some_and(|set| self.recorded(set).is_some())
    }

    /// Whether another Workload of a set has its pods on a cluster, or may get them there. One that is being deleted leaves it: otherwise
    /// replicas that leave together would each keep the copy for the others.
    pub(crate) fn need(self, set: &JobKey, cluster: &str) -> bool {
        let leaves =
            |record: &&TrackedWorkload| record.object().metadata.deletion_timestamp.is_some();
        self.holding(set).filter(|one| !leaves(one)).any(|record| {
            let status = &record.object().status;
            let mut chosen = status.nominated_cluster_names.iter().chain(&status.cluster_name);
            chosen.any(|name| name == cluster)
        })
    }

    /// All replicas of a set go to one cluster: the first of them races, and the others follow it.
    pub(crate) fn keep_together(self, race: &mut ClusterRace, fleet: &Fleet) {
        // Most Workloads do not race, and every evaluation comes here.
        if race.clusters.is_empty() {
            return;
        }
        let Some(set) = self.set() else {
            return;
        };
        let own = self.workloads.get(self.key).and_then(|one| replica_of(one.object()));
        let recorded = self.recorded(set);
        let leads = self.holding(set).all(|one| replica_of(one.object()) > own);
        match recorded {
            Some(cluster) => race.clusters.retain(|id| fleet.name(*id) == cluster),
            None if leads => {}
            None => race.clusters.clear(),
        }
    }
}
