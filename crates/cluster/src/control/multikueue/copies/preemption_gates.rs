//! Preemption gates of clones (docs/reference/multikueue.md §2.5, §2.6): which a clone is created with, and their opening. The decision is
//! `dispatch::workload`.

use std::{borrow::Cow, sync::Arc};

use crds::{
    names::gates::MULTI_KUEUE,
    v1beta2::{PreemptionGate, Workload},
};
use index::status::{self, StatusStamp};
use jiff::Timestamp;

use super::worker_writes;
use crate::control::{
    context::Context,
    multikueue::{view::evaluated_workload::EvaluatedWorkload, workers::worker::Worker},
    outbox::{Purpose, Subject},
};

/// A Workload with the preemption gates that its clones are created with: those of manager and worker are independent of each other.
/// A replica that follows others has no other cluster to leave the preemption to.
pub(crate) fn with_clone_gates<'w>(
    evaluated: EvaluatedWorkload<'_>,
    workload: &'w Arc<Workload>,
) -> Cow<'w, Workload> {
    if !evaluated.config.orders_preemption {
        return Cow::Borrowed(workload);
    }
    let gated = !evaluated.siblings().follow();
    let gate = gated.then(|| PreemptionGate { name: MULTI_KUEUE.to_owned() });
    let mut workload = Workload::clone(workload);
    workload.spec.preemption_gates = gate.into_iter().collect();
    Cow::Owned(workload)
}

/// Opens the preemption gate of the clone on a worker. An opening of another clone that may be applied is repeated first, since a
/// request that was lost changes no clone, and so no watch would end the wait.
pub(crate) fn open_preemption_gate(
    workload: EvaluatedWorkload<'_>,
    worker: &Worker,
    ctx: &mut Context,
) {
    let (key, writes) = (workload.key, ctx.outbox.writes());
    let may_be_open = |one: &&Worker| {
        let target = one.target(Subject::Workload, key);
        writes.may_be_applied(&target, Purpose::OpenCloneGate) && has_turn(workload, one, ctx.now)
    };
    let repeated = workload.workers.concerned(key, writes).map(|(_, one)| one).find(may_be_open);
    let worker = repeated.unwrap_or(worker);
    if let Some(clone) = worker.clones.get(key) {
        let status = clone.object().status.clone();
        let generation = clone.object().metadata.generation.unwrap_or_default();
        let at = StatusStamp { now: ctx.now, generation };
        let after = status::with_open_gate(status, MULTI_KUEUE, at);
        worker_writes::write_gates(worker, key, &after.preemption_gates, ctx);
    }
}

/// Whether an opening on a worker delays those of other clones. One that is not reached delays them from the loss of the connection on
/// (`dispatch::workload`), and one that has refused to open the gate, or has not answered for long, does not.
fn has_turn(workload: EvaluatedWorkload<'_>, worker: &Worker, now: Timestamp) -> bool {
    let (key, name) = (workload.key, worker.name());
    let is_chosen = workload.record().is_some_and(|record| {
        let status = &record.object().status;
        status.nominated_cluster_names.iter().chain(&status.cluster_name).any(|one| one == name)
    });
    let has_clone = worker.clones.get(key).is_some();
    let may_open = !worker.refused.openings.has(key, &(), now);
    is_chosen && has_clone && may_open && worker.lost_since().is_none()
}
