//! Which Workloads a change of a worker concerns: its connection, its first lists, its leases.
//!
//! An evaluation depends on a worker in the following ways. Those are found in one pass over all Workloads per decision with a
//! change; only what they find is evaluated.
//!
//! | what depends on it | how it is found |
//! |---|---|
//! | a copy that was observed on it, or may be there unseen: also of a Workload that is gone, finished or without quota | the copies of the worker, and creates that are not settled |
//! | a nomination or a record of it: what is missing there is created, or counts as lost | the status of the Workload |
//! | a Ready check without a recorded cluster: any cluster may have the copy | the same, for a change of any worker |
//! | quota without a nomination: whether clusters race depends on which of them report | the same |
//! | a race beside clusters that report: a cluster that returns joins it | the fleet's racing Workloads, for any worker |
//! | a race that lacks a configured cluster: that may join | `awaits_clusters`, after a change of the fleet; a cluster that is new in a MultiKueueConfig has nominated Workloads evaluated first |
//! | an orphaned job: after a restart any worker may have its copy | the orphans |
//! | a pending Workload without room | no evaluation: the fleet wakes its class |
//!
//! A Workload that waits for its other checks and has no copy depends on no worker: its nomination is decided when they are Ready.

use std::collections::BTreeSet;

use dispatch::workload::DispatchCheckState;
use runtime::watch::Key;

use super::{
    MultiKueueDispatch,
    dispatch_inputs::WorkerInputs,
    view::hub_jobs::{check_state, multikueue_check},
    workers::worker::Worker,
};
use crate::control::{outbox::Writes, scheduling::Scheduler, workloads::TrackedWorkload};

impl MultiKueueDispatch {
    /// Workloads that a change of these workers concerns, beside those that wait for further clusters.
    pub(crate) fn concerned_by(
        &self,
        workers: &BTreeSet<Box<str>>,
        inputs: &WorkerInputs<'_>,
        writes: &Writes,
    ) -> BTreeSet<Key> {
        let WorkerInputs { workloads, scheduler, fleet, .. } = inputs;
        let known = workers.iter().filter_map(|name| self.workers.by_name(name));
        let copies = known.flat_map(Worker::workloads).cloned();
        let racing = fleet.racing_workloads().filter_map(|id| workloads.by_id(id));
        let racing = racing.map(|(key, _)| key.clone());
        let chosen = workloads
            .iter()
            .filter(|(_, record)| names(record, workers) || is_undecided(record, scheduler));
        let chosen = chosen.map(|(key, _)| key.clone());
        copies.chain(racing).chain(chosen).chain(writes.unsettled_on(workers)).collect()
    }
}

/// Whether a Workload with quota is nominated for one of these workers, or recorded there.
fn names(record: &TrackedWorkload, workers: &BTreeSet<Box<str>>) -> bool {
    let status = &record.object().status;
    let mut chosen = status.nominated_cluster_names.iter().chain(&status.cluster_name);
    record.phase().holds_quota() && chosen.any(|name| workers.contains(name.as_str()))
}

/// Whether any cluster may have the copy of a Workload with quota, or get its nomination.
fn is_undecided(record: &TrackedWorkload, scheduler: &Scheduler) -> bool {
    let status = &record.object().status;
    if status.cluster_name.is_some() || !record.phase().holds_quota() {
        return false;
    }
    let Some(check) = multikueue_check(record, scheduler) else {
        return false;
    };
    let ready = check_state(record.object(), Some(&check)) == DispatchCheckState::Ready;
    let awaits_others = index::status::awaits_other_checks(status, &check);
    ready || status.nominated_cluster_names.is_empty() && !awaits_others
}
