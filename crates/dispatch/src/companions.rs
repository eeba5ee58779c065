//! Workloads that run on one cluster: the replicas of a set, because one copy of the set makes the pods of all of them
//! (docs/reference/multikueue.md §2.4).

use std::collections::BTreeMap;

use engine::ids::{ClusterId, WorkloadId};

/// Placed Workloads by what they have in common.
#[derive(Debug, Default)]
pub(crate) struct Companions {
    placed: BTreeMap<Box<str>, BTreeMap<WorkloadId, ClusterId>>,
    set_of: BTreeMap<WorkloadId, Box<str>>,
}

impl Companions {
    /// Records the placement of a Workload of a set.
    pub(crate) fn place(&mut self, workload: WorkloadId, set: &str, cluster: ClusterId) {
        self.set_of.insert(workload, set.into());
        self.placed.entry(set.into()).or_default().insert(workload, cluster);
    }

    /// Removes a placement. Returns whether others of its set may now go anywhere: it was the last one.
    pub(crate) fn remove(&mut self, workload: WorkloadId) -> bool {
        let Some(set) = self.set_of.remove(&workload) else {
            return false;
        };
        let Some(placed) = self.placed.get_mut(&set) else {
            return false;
        };
        placed.remove(&workload);
        let is_last = placed.is_empty();
        if is_last {
            self.placed.remove(&set);
        }
        is_last
    }

    /// Whether a set is placed, and not on this cluster.
    pub(crate) fn are_elsewhere(&self, set: &str, cluster: ClusterId) -> bool {
        self.placed.get(set).is_some_and(|placed| placed.values().all(|one| *one != cluster))
    }
}
