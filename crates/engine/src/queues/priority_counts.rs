//! Number of reserving Workloads per priority, to find the lowest one.

use smallvec::SmallVec;

/// Counts by priority, in no particular order. Priorities are few, so the search is linear.
#[derive(Debug, Default, Clone)]
pub(crate) struct PriorityCounts {
    counts: SmallVec<[(i64, u32); 2]>,
}

impl PriorityCounts {
    pub(crate) fn add(&mut self, priority: i64) {
        match self.counts.iter_mut().find(|(known, _)| *known == priority) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((priority, 1)),
        }
    }

    pub(crate) fn remove(&mut self, priority: i64) {
        let Some(at) = self.counts.iter().position(|(known, _)| *known == priority) else {
            return;
        };
        self.counts[at].1 -= 1;
        if self.counts[at].1 == 0 {
            self.counts.swap_remove(at);
        }
    }

    /// The priorities, in no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = i64> + '_ {
        self.counts.iter().map(|(priority, _)| *priority)
    }

    pub(crate) fn lowest(&self) -> Option<i64> {
        self.all().min()
    }
}
