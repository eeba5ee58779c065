//! Capacity of ended Workloads before a report shows it.
//!
//! A report that does not include the end of a Workload still counts its pods. The nodes of these pods are unknown,
//! so their capacity cannot be added to the free capacity. A Workload with equal pods can reuse it at once; in a
//! queue of equal Workloads that is the next head (docs/reference/dispatch.md §2).
//!
//! Cost: one comparison per ended Workload and placement. An entry lives until the next report, about a second.

use std::sync::Arc;

use crate::AssignedWorkload;

/// Ended Workloads of one cluster, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ReleasedCapacity {
    ended: Vec<(u64, Arc<AssignedWorkload>)>,
}

/// Ended Workloads whose capacity is not reused yet.
#[derive(Debug, Default)]
pub(crate) struct UnusedReleases(Vec<Arc<AssignedWorkload>>);

impl ReleasedCapacity {
    /// Adds a Workload that ended at this resourceVersion.
    pub(crate) fn add(&mut self, version: u64, work: Arc<AssignedWorkload>) {
        self.ended.push((version, work));
    }

    /// Removes the Workloads that a report with this `as_of` includes.
    pub(crate) fn report_received(&mut self, as_of: u64) {
        self.ended.retain(|(version, _)| *version > as_of);
    }

    /// All entries, as not reused.
    pub(crate) fn unused(&self) -> UnusedReleases {
        UnusedReleases(self.ended.iter().map(|(_, work)| Arc::clone(work)).collect())
    }
}

impl UnusedReleases {
    /// Whether an ended Workload has pods equal to those of `work`.
    pub(crate) fn covers(&self, work: &AssignedWorkload) -> bool {
        self.find(work).is_some()
    }

    /// Uses up an ended Workload with equal pods. Returns whether there was one.
    pub(crate) fn take_matching(&mut self, work: &AssignedWorkload) -> bool {
        self.find(work).map(|index| self.0.remove(index)).is_some()
    }

    fn find(&self, work: &AssignedWorkload) -> Option<usize> {
        self.0.iter().position(|ended| ended.has_same_pods(work))
    }
}
