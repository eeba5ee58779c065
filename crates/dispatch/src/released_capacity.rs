//! Room of work that is over, before a report says so.
//!
//! A report that does not take the end of a Workload into account still counts its pods. On which nodes they ran is not
//! known, so their room cannot be added to what else is free there. But whoever asks for the very same pods can have it,
//! and in a queue of equal Workloads that is the next one: it need not wait for the report (docs/reference/dispatch.md §2).
//!
//! Cost: one comparison per credit and placement; credits live until the next report, a second or so.

use std::sync::Arc;

use crate::AssignedWorkload;

/// Credits of one cluster, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ReleasedCapacity {
    ended: Vec<(u64, Arc<AssignedWorkload>)>,
}

/// Credits that nobody uses yet.
#[derive(Debug, Default)]
pub(crate) struct UnusedReleases(Vec<Arc<AssignedWorkload>>);

impl ReleasedCapacity {
    /// Work ended at this resourceVersion.
    pub(crate) fn add(&mut self, version: u64, work: Arc<AssignedWorkload>) {
        self.ended.push((version, work));
    }

    /// A report came that takes everything up to this version into account.
    pub(crate) fn report_received(&mut self, as_of: u64) {
        self.ended.retain(|(version, _)| *version > as_of);
    }

    /// All of them.
    pub(crate) fn unused(&self) -> UnusedReleases {
        UnusedReleases(self.ended.iter().map(|(_, work)| Arc::clone(work)).collect())
    }
}

impl UnusedReleases {
    /// Whether work could have the room of some that ended.
    pub(crate) fn covers(&self, work: &AssignedWorkload) -> bool {
        self.find(work).is_some()
    }

    /// Uses a credit for work; whether there was one.
    pub(crate) fn take_matching(&mut self, work: &AssignedWorkload) -> bool {
        self.find(work).map(|index| self.0.remove(index)).is_some()
    }

    fn find(&self, work: &AssignedWorkload) -> Option<usize> {
        self.0.iter().position(|ended| ended.has_same_pods(work))
    }
}
