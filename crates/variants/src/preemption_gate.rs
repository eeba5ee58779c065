//! Which variant may preempt: one at a time (docs/reference/kueue.md §4.13).
//!
//! Every variant is made with a closed gate. The gate of the best one that would have to preempt is opened, once each better one was
//! evaluated, and the next one five minutes later, unless one of the family is admitted by then. An eviction closes the gate again.

use std::time::Duration;

use crds::{
    meta::{Condition, find, is_true},
    names::{
        conditions::{BLOCKED_ON_PREEMPTION_GATES, QUOTA_RESERVED, REQUEUED},
        gates::CONCURRENT_ADMISSION,
        reasons::PENDING_EVALUATION,
    },
    v1beta2::{PreemptionGateState, Workload},
};
use jiff::{SignedDuration, Timestamp};

use crate::family::{Variant, VariantFamily};

/// How long a variant with an open gate may take before the next gate is opened, and how long a gate waits for the evaluation of a better
/// variant.
pub const PREEMPTION_TIMEOUT: Duration = Duration::from_secs(300);

/// What follows for the gates of a family.
#[derive(Debug, Clone, Copy)]
pub enum NextGate<'a> {
    /// No variant waits for its gate.
    Nothing,
    /// This gate is opened now.
    Open(Variant<'a>),
    /// The next gate is opened at this time.
    Wait(Timestamp),
}

/// The variant with the next preemption gate to open.
#[must_use]
pub fn next_gate<'a>(family: &VariantFamily<'a>, now: Timestamp) -> NextGate<'a> {
    let competing = || family.variants.iter().copied().filter(|one| competes(one.workload));
    let Some(next) = competing().find(|one| is_blocked(one.workload)) else {
        return NextGate::Nothing;
    };
    let opened =
        competing().filter_map(|one| open_gate(one.workload)?.last_transition_time.as_ref());
    // A cycle may see a worse variant first. With its gate open it would preempt although a better one can (kueue#14272).
    let better = competing().take_while(|one| !is_blocked(one.workload));
    let unevaluated = better.filter_map(|one| unevaluated_since(one.workload));
    let timeout = SignedDuration::try_from(PREEMPTION_TIMEOUT).unwrap_or(SignedDuration::MAX);
    let since = opened.map(|at| at.0).chain(unevaluated).max();
    match since.map(|at| at.saturating_add(timeout).unwrap_or(Timestamp::MAX)) {
        Some(at) if at > now => NextGate::Wait(at),
        _ => NextGate::Open(next),
    }
}

/// Whether the variant would have to preempt, and its gate is closed.
fn is_blocked(workload: &Workload) -> bool {
    open_gate(workload).is_none()
        && is_true(&workload.status.conditions, BLOCKED_ON_PREEMPTION_GATES)
}

/// Since when a variant in its queue waits for its evaluation: its creation, or the end of its last reservation. `None` if a cycle has
/// evaluated it.
fn unevaluated_since(workload: &Workload) -> Option<Timestamp> {
    let conditions = &workload.status.conditions;
    let is_kept_out = find(conditions, REQUEUED).is_some_and(|one| one.status == "False");
    if is_kept_out || open_gate(workload).is_some() {
        return None;
    }
    let reserved = find(conditions, QUOTA_RESERVED);
    if reserved.is_some_and(|one| one.reason != PENDING_EVALUATION) {
        return None;
    }
    let created = workload.metadata.creation_timestamp.as_ref().map(|time| time.0);
    reserved.and_then(Condition::transitioned_at).max(created)
}

/// Whether the variant may still be admitted.
fn competes(workload: &Workload) -> bool {
    workload.is_active() && !workload.has_quota_reservation() && !workload.is_finished()
}

fn open_gate(workload: &Workload) -> Option<&PreemptionGateState> {
    workload.status.open_gate(CONCURRENT_ADMISSION)
}
