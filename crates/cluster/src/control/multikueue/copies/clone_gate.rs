//! The preemption gate of a clone, as the state machine sees it.

use crds::{
    meta::{Condition, find_true},
    names::{conditions::BLOCKED_ON_PREEMPTION_GATES, gates::MULTI_KUEUE},
    v1beta2::Workload,
};
use dispatch::workload::CloneGate;
use jiff::Timestamp;
use runtime::watch::Key;

use crate::control::{multikueue::workers::worker::Worker, time::engine_time};

/// See the module. One that the worker has refused to open is as good as none.
pub(crate) fn clone_gate(
    worker: &Worker,
    key: &Key,
    clone: &Workload,
    now: Timestamp,
) -> CloneGate {
    let has = clone.spec.preemption_gates.iter().any(|gate| gate.name == MULTI_KUEUE);
    if !has || worker.refused.openings.has(key, &(), now) {
        return CloneGate::Absent;
    }
    let status = &clone.status;
    if let Some(open) = status.open_gate(MULTI_KUEUE) {
        let since = open.last_transition_time.as_ref().map(|time| engine_time(time.0));
        return CloneGate::Open { since: since.unwrap_or_default() };
    }
    let blocked = find_true(&status.conditions, BLOCKED_ON_PREEMPTION_GATES);
    let since = |one: &Condition| one.transitioned_at().map(engine_time).unwrap_or_default();
    CloneGate::Closed { blocked_since: blocked.map(since) }
}
