//! The PodsReady policy: PodsReady timeout, recovery timeout, and requeue backoff (docs/reference/kueue.md §2.4, §7.6).
//!
//! The condition `PodsReady` of a Workload follows the status of its job; of a dispatched one, the status that was copied
//! from the worker. An agent writes no such condition: its manager sees the pods of the clone in the copied status and
//! applies the policy.

use std::time::Duration;

use config::{GoDuration, WaitForPodsReady};

/// `waitForPodsReady` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodsReadyPolicy {
    /// From admission until all pods are ready; no limit if unset.
    pub timeout: Option<Duration>,
    /// From the failure of a pod until all are ready again; no limit if unset.
    pub recovery_timeout: Option<Duration>,
    /// Backoff before the first requeue; doubles with each further eviction.
    pub backoff_base: Duration,
    /// The longest backoff.
    pub backoff_max: Duration,
    /// Evictions that are followed by a requeue; unlimited if unset.
    pub backoff_limit_count: Option<i32>,
    /// No Workload is admitted while pods of an admitted one are not ready.
    pub block_admission: bool,
}

impl From<&WaitForPodsReady> for PodsReadyPolicy {
    /// A timeout of zero is no limit.
    fn from(file: &WaitForPodsReady) -> Self {
        let limit = |one: GoDuration| one.positive().filter(|one| !one.is_zero());
        let seconds = |one: i32| Duration::from_secs(u64::try_from(one).unwrap_or(0));
        let strategy = &file.requeuing_strategy;
        Self {
            timeout: limit(file.timeout),
            recovery_timeout: file.recovery_timeout.and_then(limit),
            backoff_base: seconds(strategy.backoff_base_seconds),
            backoff_max: seconds(strategy.backoff_max_seconds),
            backoff_limit_count: strategy.backoff_limit_count,
            block_admission: file.block_admission,
        }
    }
}

impl PodsReadyPolicy {
    /// Requeue backoff after an eviction, counted from one.
    pub(crate) fn requeue_backoff(&self, eviction: i32) -> Duration {
        let doublings = u32::try_from(eviction.saturating_sub(1)).unwrap_or(0);
        let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
        self.backoff_base.saturating_mul(factor).min(self.backoff_max)
    }

    /// Whether the Workload is requeued after this eviction; otherwise it is deactivated.
    pub(crate) fn requeues_after(&self, eviction: i32) -> bool {
        self.backoff_limit_count.is_none_or(|attempts| eviction <= attempts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> PodsReadyPolicy {
        let file: WaitForPodsReady = serde_saphyr::from_str(text).expect("a block");
        PodsReadyPolicy::from(&file)
    }

    #[test]
    fn the_requeue_backoff_doubles_up_to_its_maximum_and_requeues_end() {
        let strategy = "{backoffBaseSeconds: 10, backoffMaxSeconds: 60, backoffLimitCount: 3}";
        let policy = policy(&format!("{{requeuingStrategy: {strategy}}}"));
        let pauses = [1, 2, 3, 4, 99].map(|eviction| policy.requeue_backoff(eviction).as_secs());
        assert_eq!(pauses, [10, 20, 40, 60, 60]);
        assert_eq!([1, 3, 4].map(|eviction| policy.requeues_after(eviction)), [true, true, false]);
    }
}
