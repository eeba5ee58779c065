//! The requeue backoff after an eviction: its length, and when the limit is reached.
//!
//! The length follows from the number of earlier evictions. There is no jitter: the same events must give the same
//! decisions. Source: docs/reference/kueue.md §2.4, §3.4.

use crate::time::Time;

/// The backoff after an eviction because pods were not ready in time (`requeuingStrategy`). Spans are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequeueBackoff {
    /// Span after the first eviction; it doubles with every further one.
    pub base: i64,
    /// The longest span.
    pub longest: i64,
    /// `backoffLimitCount`: the Workload is deactivated after more evictions; `None` is unlimited.
    pub limit: Option<u32>,
}

/// What follows an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequeueDecision {
    /// The Workload is requeued.
    RequeueDestination {
        /// Evictions so far, including this one.
        count: u32,
        /// Not before this time.
        at: Time,
    },
    /// The limit is exceeded: the Workload is deactivated.
    Deactivate,
}

impl RequeueBackoff {
    /// The decision after an eviction at `now`, after `count` earlier ones.
    pub fn after(&self, count: u32, now: Time) -> RequeueDecision {
        let next = count.saturating_add(1);
        if self.limit.is_some_and(|limit| next > limit) {
            return RequeueDecision::Deactivate;
        }
        let factor = 1_i64.checked_shl(count).filter(|factor| *factor > 0).unwrap_or(i64::MAX);
        let wait = self.base.saturating_mul(factor).min(self.longest).max(0);
        RequeueDecision::RequeueDestination { count: next, at: Time(now.0.saturating_add(wait)) }
    }

    /// The end of the backoff that admission checks request. Each check gives the start and length of its own; the
    /// latest end counts. `None` without checks.
    pub fn after_checks(checks: impl IntoIterator<Item = (Time, i64)>) -> Option<Time> {
        let ends = checks.into_iter().map(|(since, wait)| Time(since.0.saturating_add(wait)));
        ends.max()
    }
}
