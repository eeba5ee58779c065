//! Backoff: how long an evicted Workload stays away, and its return when that time is over.
//!
//! How long follows from how often it was evicted before; there is no random part, since the same events must give the
//! same decisions. Source: docs/reference/kueue.md §2.4, §3.4.
//!
//! Cost: one entry per Workload that waits, O(log of them) to enter and to leave.

use crate::time::Time;

/// How long to wait after an eviction because pods were not ready in time. Spans are in the unit of [`Time`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequeueBackoff {
    /// After the first eviction. It doubles with every further one.
    pub base: i64,
    /// The longest wait.
    pub longest: i64,
    /// After so many evictions no other attempt is made; `None` is no bound.
    pub limit: Option<u32>,
}

/// What follows an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequeueDecision {
    /// Another attempt.
    RequeueDestination {
        /// Evictions so far, this one included.
        count: u32,
        /// Not before this time.
        at: Time,
    },
    /// The limit is exceeded: the Workload is deactivated.
    Deactivate,
}

impl RequeueBackoff {
    /// What follows an eviction at `now`, after `count` earlier ones.
    pub fn after(&self, count: u32, now: Time) -> RequeueDecision {
        let next = count.saturating_add(1);
        if self.limit.is_some_and(|limit| next > limit) {
            return RequeueDecision::Deactivate;
        }
        let factor = 1_i64.checked_shl(count).filter(|factor| *factor > 0).unwrap_or(i64::MAX);
        let wait = self.base.saturating_mul(factor).min(self.longest).max(0);
        RequeueDecision::RequeueDestination { count: next, at: Time(now.0.saturating_add(wait)) }
    }

    /// When a Workload may try again that was sent back by checks: each says since when, and how long it wants to wait.
    pub fn after_checks(checks: impl IntoIterator<Item = (Time, i64)>) -> Option<Time> {
        let ends = checks.into_iter().map(|(since, wait)| Time(since.0.saturating_add(wait)));
        ends.max()
    }
}
