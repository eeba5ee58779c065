//! The Event about queued work that moves, and its number (docs/reference/dispatch.md §3).

use crds::{names::reasons::REBALANCED, v1beta2::Workload};
use runtime::events::{EventRecord, EventType, Regarding};

use crate::control::{
    context::Context,
    measurement::{Measurement, WorkerLabels, WorkerMeasurement},
};

/// Reports that a Workload that waits for these queues was nominated for a cluster with room.
pub(super) fn report_move(workload: &Workload, queues: &[&str], to: &str, ctx: &mut Context) {
    let queues: Vec<String> = queues.iter().map(|name| format!("\"{name}\"")).collect();
    let note = format!(
        "Worker cluster \"{to}\" has room: nominated there while the workload waits for the queues of {}",
        queues.join(", ")
    );
    let (event_type, reason) = (EventType::Normal, REBALANCED.to_owned());
    let regarding = Regarding::of(workload);
    let action = reason.clone();
    ctx.outbox.publish(EventRecord {
        regarding,
        event_type,
        action,
        reason,
        note,
        controller: None,
    });
    let admission = workload.status.admission.as_ref();
    let cluster_queue = admission.map(|one| one.cluster_queue.clone()).unwrap_or_default();
    let labels = WorkerLabels { cluster_queue, cluster: to.to_owned() };
    ctx.measurements.push(Measurement::Worker(WorkerMeasurement::Rebalanced(labels)));
}
