//! What the conditions of a request mean for its check, in this order (docs/reference/kueue.md §2.3):
//!
//! ```text
//! Failed           attempt <= limit: Retry, after a backoff; otherwise Rejected
//! CapacityRevoked  Rejected
//! BookingExpired   as Failed, before the admission; afterwards nothing
//! Provisioned      Ready, with pod set updates
//! Accepted         Pending, with the message of Provisioned: when room is expected
//! none             Pending
//! ```

use crds::{
    meta::{find, is_true},
    names::{
        check_states::{PENDING, READY, REJECTED, RETRY},
        provisioning::{ACCEPTED, BOOKING_EXPIRED, CAPACITY_REVOKED, FAILED, PROVISIONED},
    },
    v1beta2::{
        AdmissionCheckState, PodSetUpdate, ProvisioningRequestConfigSpec,
        ProvisioningRequestRetryStrategy, Workload,
    },
};

use crate::{
    api::ProvisioningRequest,
    pod_set_updates::{ProvidedUpdates, updates},
};

/// Attempts after the first, where a config names no number.
const BACKOFF_LIMIT_COUNT: i32 = 3;

/// Seconds before the second attempt, where a config names none.
const BACKOFF_BASE_SECONDS: i32 = 60;

/// The longest backoff in seconds, where a config names none.
const BACKOFF_MAX_SECONDS: i32 = 1800;

/// The next state of a check in the status of its Workload.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckUpdate {
    /// Name of the AdmissionCheck.
    pub check: String,
    /// Pending, Ready, Retry or Rejected.
    pub state: &'static str,
    /// The message.
    pub message: String,
    /// What the check adds to the pods.
    pub pod_set_updates: Vec<PodSetUpdate>,
    /// Of a Retry: seconds from the transition to the next attempt.
    pub requeue_after_seconds: Option<i32>,
    /// The message says why nothing can be created.
    pub fails: bool,
}

impl CheckUpdate {
    /// The state as it is.
    #[must_use]
    pub fn unchanged(known: &AdmissionCheckState) -> Self {
        let states = [READY, RETRY, REJECTED];
        Self {
            check: known.name.clone(),
            state: states.into_iter().find(|one| *one == known.state).unwrap_or(PENDING),
            message: known.message.clone(),
            pod_set_updates: known.pod_set_updates.clone(),
            requeue_after_seconds: known.requeue_after_seconds,
            fails: false,
        }
    }

    /// The state as it is, with a message that says why nothing can be created.
    #[must_use]
    pub fn failure(known: &AdmissionCheckState, message: String) -> Self {
        Self { message, fails: true, ..Self::unchanged(known) }
    }

    /// The update, if it changes anything of the state.
    #[must_use]
    pub fn if_differing(self, known: &AdmissionCheckState) -> Option<Self> {
        let same = Self { fails: false, ..self.clone() } == Self::unchanged(known);
        (!same).then_some(self)
    }

    /// Another state, with this message.
    #[must_use]
    pub fn to(
        known: &AdmissionCheckState,
        state: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { state, message: message.into(), ..Self::unchanged(known) }
    }
}

/// A request with the number of its attempt.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The request.
    pub request: &'a ProvisioningRequest,
    /// The number; the first one is 1.
    pub number: i32,
}

/// The state of a check after its present attempt.
#[must_use]
pub fn next_state(
    known: &AdmissionCheckState,
    attempt: Attempt<'_>,
    workload: &Workload,
    config: &ProvisioningRequestConfigSpec,
) -> CheckUpdate {
    let conditions = &attempt.request.status.conditions;
    let admitted = workload.is_admitted();
    let message = |condition| find(conditions, condition).map_or("", |one| one.message.as_str());
    let is = |condition| is_true(conditions, condition);
    if is(FAILED) {
        let failure = ("failure", message(FAILED));
        return after_failure(known, attempt.number, failure, config);
    }
    if is(CAPACITY_REVOKED) {
        // Pods that the autoscaler's nodes have lost would wait for ever. A Workload that is over has none.
        if !workload.is_active() || workload.is_finished() {
            return CheckUpdate::unchanged(known);
        }
        return CheckUpdate::to(known, REJECTED, message(CAPACITY_REVOKED));
    }
    if is(BOOKING_EXPIRED) {
        // After the admission the pods use the room, booked or not.
        if admitted {
            return CheckUpdate::unchanged(known);
        }
        let failure = ("booking expired", message(BOOKING_EXPIRED));
        return after_failure(known, attempt.number, failure, config);
    }
    if is(PROVISIONED) {
        // Updates of a Ready check cannot be changed.
        if known.state == READY {
            return CheckUpdate::unchanged(known);
        }
        let ProvidedUpdates { pod_set_updates, left_out } =
            updates(workload, attempt.request, config);
        let message = [message(PROVISIONED).to_owned(), left_out].join("");
        return CheckUpdate { pod_set_updates, ..CheckUpdate::to(known, READY, message) };
    }
    if is(ACCEPTED) {
        // The condition Provisioned=False says when room is expected.
        return match find(conditions, PROVISIONED) {
            Some(expected) => CheckUpdate::to(known, PENDING, &*expected.message),
            None => CheckUpdate::unchanged(known),
        };
    }
    // Nothing was answered yet. What was said about an earlier attempt is true no more.
    CheckUpdate::to(known, PENDING, "")
}

/// The state after an attempt failed: another one while the limit allows it.
fn after_failure(
    known: &AdmissionCheckState,
    attempt: i32,
    (what, message): (&str, &str),
    config: &ProvisioningRequestConfigSpec,
) -> CheckUpdate {
    let strategy = config.retry_strategy.as_ref();
    let limit = strategy.and_then(|one| one.backoff_limit_count).unwrap_or(BACKOFF_LIMIT_COUNT);
    if attempt > limit {
        return CheckUpdate::to(known, REJECTED, message);
    }
    let message = format!("Retrying after {what}: {message}");
    let retries = known.retry_count.unwrap_or(0);
    // A request that stayed after its eviction was counted then.
    if attempt <= retries {
        return CheckUpdate { message, ..CheckUpdate::unchanged(known) };
    }
    let requeue_after_seconds = Some(backoff_seconds(strategy, retries));
    CheckUpdate { requeue_after_seconds, ..CheckUpdate::to(known, RETRY, message) }
}

/// The backoff before the next attempt: doubled with each retry so far.
fn backoff_seconds(strategy: Option<&ProvisioningRequestRetryStrategy>, retries: i32) -> i32 {
    let base = strategy.and_then(|one| one.backoff_base_seconds).unwrap_or(BACKOFF_BASE_SECONDS);
    let longest = strategy.and_then(|one| one.backoff_max_seconds).unwrap_or(BACKOFF_MAX_SECONDS);
    // Every base above 0 has reached the longest i32 after 31 doublings.
    let doubled = i64::from(base) << retries.clamp(0, 31);
    i32::try_from(doubled.min(i64::from(longest))).unwrap_or(longest).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_up_to_its_limit() {
        let strategy = ProvisioningRequestRetryStrategy {
            backoff_base_seconds: Some(10),
            backoff_max_seconds: Some(35),
            backoff_limit_count: None,
        };
        let of = |retries| backoff_seconds(Some(&strategy), retries);
        assert_eq!([of(0), of(1), of(2), of(i32::MAX)], [10, 20, 35, 35]);
        assert_eq!([backoff_seconds(None, 0), backoff_seconds(None, 9)], [60, 1800]);
    }
}
