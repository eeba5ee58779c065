//! Running requeue backoffs, ordered by their end.
//!
//! Cost: one entry per Workload in backoff; O(log n) to add an entry and to take the first.
//!
//! An entry is not removed when its Workload changes. It is void if the Workload is no longer in a backoff with the same
//! end; callers check that.

use std::collections::BTreeSet;

use crate::ids::WorkloadId;
use crate::time::Time;

/// Ends of backoffs with the Workloads that are requeued then.
#[derive(Debug, Default, Clone)]
pub(crate) struct Backoffs(BTreeSet<(Time, WorkloadId)>);

impl Backoffs {
    /// Adds a backoff of `workload` until `end`.
    pub(crate) fn add(&mut self, end: Time, workload: WorkloadId) {
        self.0.insert((end, workload));
    }

    /// Removes and returns the earliest entry that ends at or before `now`.
    pub(crate) fn pop_ended(&mut self, now: Time) -> Option<(Time, WorkloadId)> {
        let &(end, _) = self.0.first()?;
        if end > now { None } else { self.0.pop_first() }
    }

    /// All entries, earliest end first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Time, WorkloadId)> + '_ {
        self.0.iter().copied()
    }
}
