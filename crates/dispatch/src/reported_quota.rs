//! Quota that a worker with queues reports (docs/reference/dispatch.md §2).
//!
//! It ranks clusters and refuses none: the worker decides, and it may preempt. Which ClusterQueue takes a clone is not known here,
//! so the queue with the most room counts.

use std::collections::BTreeMap;

use engine::{Amount, ids::ResourceId};

use crate::worker_cluster::WorkerCluster;
use crate::{AssignedWorkload, WorkerMode};

impl WorkerCluster {
    /// Whether a ClusterQueue would admit the work beside all that is in flight. Always so where the nodes alone decide.
    pub(crate) fn has_quota_for(&self, work: &AssignedWorkload) -> bool {
        let report = self.report().filter(|report| report.mode == WorkerMode::Quota);
        let Some(report) = report else {
            return true;
        };
        let mut wanted = BTreeMap::new();
        self.in_flight_works().chain([work]).for_each(|one| add(&mut wanted, one));
        let wanted_of = |resource| wanted.get(resource).copied().unwrap_or_default();
        report.queues.iter().any(|queue| {
            queue.iter().all(|(resource, left)| wanted_of(resource) <= i128::from(left.0))
        })
    }
}

/// Adds what all pods of a work request.
fn add(sums: &mut BTreeMap<ResourceId, i128>, work: &AssignedWorkload) {
    for (pods, count, _) in work.pod_sets() {
        for (resource, Amount(amount)) in &pods.requests {
            *sums.entry(*resource).or_default() += i128::from(*amount) * i128::from(count);
        }
    }
}
