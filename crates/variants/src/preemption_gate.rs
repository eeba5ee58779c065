//! Which variant may preempt: one at a time (docs/reference/kueue.md §4.13).
//!
//! Every variant is made with a closed gate. The gate of the best one that would have to preempt is opened, and the next one five minutes
//! later, unless one of the family is admitted by then. An eviction closes the gate again.

use std::time::Duration;

use crds::{
    meta::is_true,
    names::{conditions::BLOCKED_ON_PREEMPTION_GATES, gates::CONCURRENT_ADMISSION},
    v1beta2::{PreemptionGateState, Workload},
};
use jiff::{SignedDuration, Timestamp};

use crate::family::{Variant, VariantFamily};

/// How long a variant with an open gate may take before the next gate is opened.
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
    let blocked = |one: &Variant<'_>| {
        open_gate(one.workload).is_none()
            && is_true(&one.workload.status.conditions, BLOCKED_ON_PREEMPTION_GATES)
    };
    let Some(next) = competing().find(blocked) else {
        return NextGate::Nothing;
    };
    let opened =
        competing().filter_map(|one| open_gate(one.workload)?.last_transition_time.as_ref());
    let timeout = SignedDuration::try_from(PREEMPTION_TIMEOUT).unwrap_or(SignedDuration::MAX);
    match opened.map(|at| at.0.saturating_add(timeout).unwrap_or(Timestamp::MAX)).max() {
        Some(at) if at > now => NextGate::Wait(at),
        _ => NextGate::Open(next),
    }
}

/// Whether the variant may still be admitted.
fn competes(workload: &Workload) -> bool {
    workload.is_active() && !workload.has_quota_reservation() && !workload.is_finished()
}

fn open_gate(workload: &Workload) -> Option<&PreemptionGateState> {
    workload.status.open_gate(CONCURRENT_ADMISSION)
}
