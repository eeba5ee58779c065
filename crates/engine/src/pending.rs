//! Workloads that wait: into a line, out of it, and what stays with them when they change.
//!
//! Source: docs/reference/kueue.md §2.5, §3.4.

use crate::ids::{QueueId, ShapeId, WorkloadId};
use crate::queues::line::Line;
use crate::spec::{Hold, LocalQueueSpec};
use crate::state::State;
use crate::workload::{Place, Workload, Workloads};

/// Where a LocalQueue leads; nowhere while it is stopped.
pub(crate) fn target(spec: &LocalQueueSpec) -> Option<QueueId> {
    (!spec.stopped).then_some(spec.queue)
}

/// Takes a pending Workload out of its line.
pub(crate) fn leave_line(state: &mut State, id: WorkloadId) {
    let Some(queue) = state.workloads.at(id).queue else {
        return;
    };
    if matches!(state.workloads.at(id).place, Place::InLine { .. } | Place::Aside { .. }) {
        let line = &mut state.queues[queue.index()].as_mut().expect("invariant: known queue").line;
        line.remove(id, &mut state.workloads);
    }
}

/// Takes a pending Workload out of its queue: whatever privilege it had there is gone.
pub(crate) fn leave_queue(state: &mut State, id: WorkloadId) {
    leave_line(state, id);
    if let Some(queue) = state.workloads.at(id).queue {
        state.queue_mut(queue).line.clear_preemptor(id);
    }
}

/// Puts a Workload without quota where it belongs.
pub(crate) fn enqueue(state: &mut State, id: WorkloadId) {
    put_in_line(state, id, Line::push);
}

/// The same for one that is to have its turn, although its shape may be parked. Upstream looks at who is parked only
/// when a Workload comes that was not in line.
pub(crate) fn enqueue_awake(state: &mut State, id: WorkloadId) {
    put_in_line(state, id, Line::push_awake);
}

fn put_in_line(state: &mut State, id: WorkloadId, push: fn(&mut Line, WorkloadId, &mut Workloads)) {
    let workload = state.workloads.at(id);
    let local = workload.local_queue.and_then(|one| state.local_queues.get(one.index()));
    let queue = local.and_then(Option::as_ref).and_then(target);
    let hold = workload.hold;
    state.workloads.at_mut(id).queue = queue;
    let Some(queue) = queue else { return };
    let line = &mut state.queues[queue.index()].as_mut().expect("invariant: known queue").line;
    match hold {
        Hold::None => push(line, id, &mut state.workloads),
        Hold::Requeue => line.set_aside(id, &mut state.workloads),
        Hold::Until(end) => {
            line.set_aside(id, &mut state.workloads);
            state.backoffs.note(end, id);
        }
        Hold::Out => return,
    }
    state.list_if_head(queue);
}

/// A pending Workload changed. In its queue it keeps whatever privilege it has, and how far its scan of flavors got if it
/// asks for the same. Tells whether it was in line there.
pub(crate) fn replace(state: &mut State, id: WorkloadId, new: Workload, pending: bool) -> bool {
    let old = state.workloads.at(id);
    let stays = pending && old.local_queue == new.local_queue && new.hold != Hold::Out;
    let awake = stays && old.queue.is_some_and(|queue| state.queue(queue).line.is_awake(old));
    if stays {
        leave_line(state, id);
    } else {
        leave_queue(state, id);
    }
    let goes_on = stays && keeps_progress(state, id, new.shape);
    alter_preemptor(state, id, new.shape);
    let old = state.workloads.at_mut(id);
    let (old_shape, scan) = (old.shape, old.scan.take());
    state.workloads.insert(id, Workload { scan: scan.filter(|_| goes_on), ..new });
    state.shapes.release(old_shape);
    awake
}

/// Without the gate every news about a Workload starts its scan anew. With it only another shape does, as far as shapes
/// are told apart.
fn keeps_progress(state: &State, id: WorkloadId, shape: ShapeId) -> bool {
    let same = state.workloads.at(id).shape == shape || !state.settings.park_by_shape;
    same && state.settings.preserve_scan_progress
}

/// Notes that a head which waits for its victims asks for something else. Upstream goes by the generation of the object,
/// which finished pods do not change.
fn alter_preemptor(state: &mut State, id: WorkloadId, shape: ShapeId) {
    let old = state.workloads.at(id);
    let Some(queue) = old.queue.filter(|&queue| state.queue(queue).line.is_preemptor(id)) else {
        return;
    };
    let (old, new) = (state.shapes.at(old.shape), state.shapes.at(shape));
    if !old.is_same_but_for_finished_pods(new) {
        state.queue_mut(queue).line.alter_preemptor(id);
    }
}
