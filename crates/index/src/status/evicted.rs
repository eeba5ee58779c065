//! Eviction: the Workload keeps its quota until its pods are gone.
//!
//! Source: docs/reference/kueue.md §2.4. Unlike in Kueue, cluster name and nomination stay until the release: the
//! withdrawal of copies reads them, also after a restart.

use crds::names::{conditions, reasons};
use crds::v1beta2::{WorkloadSchedulingStatsEviction, WorkloadStatus};

use super::condition::NewCondition;
use super::status_stamp::StatusStamp;
use super::{admitted, check_states, condition};
use crate::time::to_seconds;

const CLOSED: &str = "Closed";

/// Reason, cause and message of an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Eviction<'a> {
    /// Reason of the condition.
    pub reason: &'a str,
    /// Underlying cause; may be empty.
    pub cause: &'a str,
    /// Message of the condition.
    pub message: &'a str,
}

impl Eviction<'_> {
    /// Reason of the condition Evicted; for a deactivation it includes the cause.
    pub(super) fn condition_reason(&self) -> String {
        if self.reason == reasons::DEACTIVATED && !self.cause.is_empty() {
            format!("{}DueTo{}", self.reason, self.cause)
        } else {
            self.reason.to_owned()
        }
    }
}

/// Message of a variant that is evicted in favour of its sibling with this uid.
#[must_use]
pub fn migration_message(uid: &str) -> String {
    format!(
        "Evicted to accommodate a workload (UID: {uid}) due to migration to more favorable resource flavor"
    )
}

/// Sets Evicted. A repeated eviction with the same reason is counted once.
#[must_use]
pub fn evicted(
    mut status: WorkloadStatus,
    eviction: Eviction<'_>,
    at: StatusStamp,
) -> WorkloadStatus {
    let reason = eviction.condition_reason();
    let running = condition::find(&status.conditions, conditions::EVICTED);
    let known = running.is_some_and(|one| one.status == "True" && one.reason == reason);
    // A second write of the same eviction must not count twice.
    if !known {
        let all = &mut status.conditions;
        condition::set(
            all,
            NewCondition {
                kind: conditions::EVICTED,
                status: true,
                reason: &reason,
                message: eviction.message,
            },
            at,
        );
        count(&mut status, &eviction);
    }
    unblock(&mut status, &reason, eviction.message, at);
    // An eviction closes the preemption gates again (§2.4).
    close_gates(&mut status, at);
    // A repeated dispatch or provisioning needs its checks again.
    check_states::reset(&mut status, at);
    // The pods leave their nodes, so failed nodes under them do not matter (§2.4).
    status.unhealthy_nodes = Vec::new();
    if status.admission.is_some() {
        admitted::sync(&mut status, at);
    }
    status
}

/// Sets BlockedOnPreemptionGates to false.
fn unblock(status: &mut WorkloadStatus, reason: &str, message: &str, at: StatusStamp) {
    let r#type = conditions::BLOCKED_ON_PREEMPTION_GATES;
    if crds::meta::is_true(&status.conditions, r#type) {
        condition::set(
            &mut status.conditions,
            NewCondition { kind: r#type, status: false, reason, message },
            at,
        );
    }
}

fn close_gates(status: &mut WorkloadStatus, at: StatusStamp) {
    for gate in status.preemption_gates.iter_mut().filter(|gate| gate.position != CLOSED) {
        CLOSED.clone_into(&mut gate.position);
        gate.last_transition_time = Some(to_seconds(at.now));
    }
}

fn count(status: &mut WorkloadStatus, eviction: &Eviction<'_>) {
    let known = &mut status.scheduling_stats.get_or_insert_default().evictions;
    let same = |one: &&mut WorkloadSchedulingStatsEviction| {
        one.reason == eviction.reason && one.underlying_cause == eviction.cause
    };
    match known.iter_mut().find(same) {
        Some(one) => one.count = one.count.saturating_add(1),
        None => known.push(WorkloadSchedulingStatsEviction {
            count: 1,
            reason: eviction.reason.to_owned(),
            underlying_cause: eviction.cause.to_owned(),
        }),
    }
}
