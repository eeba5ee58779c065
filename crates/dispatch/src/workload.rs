//! The dispatch of one Workload to worker clusters, as a pure state machine.
//!
//! ```text
//!             nominated            recorded                    finished
//! (no quota) ----------> Pending ----------> Ready ----------------------> (clean up)
//!     ^                     |                  | lost, gone, evicted
//!     |       cancel          v                  v
//!     +-- raise epoch <-- stop           Retry, evicted --> stop and remove everywhere --> raise epoch --+
//!     +-------------------------------------------- Withdrawn -----------------------------------------+
//! ```
//! [`decide`] runs after every change, and after a restart with nothing but the objects of the API servers. It
//! returns the steps that remain. Source: docs/reference/dispatch.md §5-8.
//!
//! Invariants: the recorded cluster name and epoch decide, not the order of observations. A Workload starts on
//! another cluster only after every possible copy is confirmed as stopped, or its cluster was lost for
//! `worker_lost_timeout`, or was fenced under ExactlyOnce. A create without an answer is a possible copy. The epoch only rises,
//! and rises before the next nomination. A copy of a higher epoch, or of a history that the hub does not know, is *disputed*: it
//! is neither adopted nor removed before a person confirms it, and nothing is started beside it.

mod adoption;
mod assigned;
mod dispatch_step;
mod dispatch_view;
mod disputes;
mod moved;
mod nomination;
mod observed;
mod preemption_gates;
mod removal;
mod takeover;
mod withdrawal;

pub use dispatch_step::{DispatchStep, RetryReason};
pub use disputes::blocking_clusters;
pub use moved::MoveProgress;
pub use observed::{
    DispatchCheckState, DispatchTimeouts, LocalJob, LocalWorkload, RemoteConnection, RemoteCopy,
    RemoteJob, RemoteLease, RemoteWorkload, SlicePredecessor, StampState,
};
pub use preemption_gates::CloneGate;

use engine::Time;

use self::dispatch_view::{DispatchView, with_deadline};

/// Returns the steps to take now. `copies` holds every nominated or recorded cluster and every cluster with an object
/// of this Workload, ordered by cluster name; the order breaks ties.
pub fn decide(
    hub: &LocalWorkload,
    copies: &[RemoteCopy],
    settings: &DispatchTimeouts,
    now: Time,
) -> Vec<DispatchStep> {
    let view = &DispatchView { hub, copies, settings, now };
    // A process that begins to lead may see a copy before the Workload that it was made for
    // (docs/reference/dispatch.md §6).
    if let Some(until) = hub.newer_copy_until.filter(|until| now < *until) {
        return vec![DispatchStep::WaitUntil(until)];
    }
    // The final status of the hub's job stays: `clean_up` could still clear its active pods.
    if hub.finished {
        return removal::removals(view, copies.iter());
    }
    // Absence on the hub is the durable intent to delete copies (docs/reference/dispatch.md §9).
    if !hub.exists {
        return withdrawal::clean_up(view);
    }
    // Before anything is removed: what has succeeded is not done again.
    if let Some(step) = adoption::adopt(view) {
        return vec![step];
    }
    if !hub.quota_reserved {
        return withdrawal::clean_up(view);
    }
    // An eviction resets the check to Pending. Without this order the Workload would be dispatched
    // again while its copies are withdrawn.
    if hub.evicted {
        return withdrawal::withdraw(view);
    }
    if let Some(step) = disputes::supersede(view) {
        return vec![step];
    }
    let mut steps = push_priorities(view);
    steps.extend(push_sizes(view));
    steps.extend(takeover::push_stamps(view));
    steps.extend(dispatch(view));
    takeover::create_from_own_version(view, steps)
}

/// Steps of a Workload that holds quota, by its check.
fn dispatch(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    let DispatchView { hub, copies, .. } = *view;
    match hub.check {
        // A later slice has the cluster of its predecessor from the start.
        DispatchCheckState::Pending
            if hub.recorded_cluster.is_some()
                && hub.predecessor == SlicePredecessor::Absent
                && !is_recorded_slice_to_create(view) =>
        {
            // A slice may still wait for its admission.
            preemption_gates::open_gate(view)
                .into_iter()
                .chain(assigned::follow_unready(view))
                .collect()
        }
        // Nothing may start on a worker before, say, its nodes are provisioned; what exists there is taken back
        // (docs/reference/multikueue.md §2.4).
        DispatchCheckState::Pending if hub.awaits_other_checks => {
            removal::removals(view, copies.iter())
        }
        // The jobs of the earlier slice are being removed; then this Workload has jobs of its own.
        DispatchCheckState::Pending if hub.predecessor == SlicePredecessor::Leaves => Vec::new(),
        // What the hub does not know of may be this Workload, running.
        DispatchCheckState::Pending if copies.iter().any(|copy| view.blocks(copy)) => {
            with_deadline(Vec::new(), view.ends_of_blocks())
        }
        DispatchCheckState::Pending
            if hub.nominated_clusters.is_empty() && hub.recorded_cluster.is_none() =>
        {
            nomination::nominate(view)
        }
        DispatchCheckState::Pending => {
            let changes = nomination::changes_race(view).then_some(DispatchStep::Nominate);
            let first = changes.into_iter().chain(preemption_gates::open_gate(view));
            first.chain(nomination::dispatch_nominated(view)).collect()
        }
        DispatchCheckState::Ready => assigned::follow_recorded(view),
        // The engine evicts the Workload; then everything is withdrawn.
        DispatchCheckState::Retry | DispatchCheckState::Rejected => Vec::new(),
    }
}

/// Whether a slice is recorded for the cluster of the one that it has replaced and has no clone there yet. Upstream's manager may
/// have finished that one already (docs/reference/multikueue.md §2.13).
fn is_recorded_slice_to_create(view: &DispatchView<'_>) -> bool {
    let copy = view.hub.recorded_cluster.and_then(|cluster| view.copy(cluster));
    let is_seen = |copy: &RemoteCopy| copy.connection == RemoteConnection::Connected;
    view.hub.is_slice && copy.is_some_and(|copy| is_seen(copy) && copy.clone.is_none())
}

/// A changed priority is no reason to remove running work (docs/reference/multikueue.md §2.3 step 5).
fn push_priorities(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    let stale = view.connected().filter(|copy| {
        let clone = view.living_clone(copy);
        clone.is_some_and(|clone| clone.stale_priority)
    });
    stale.map(|copy| DispatchStep::PushPriority(copy.cluster)).collect()
}

/// Neither is another size of an elastic job: its copy may still name an earlier slice. The pods of a further replica of a
/// set wait for their own clone, so the copy of the set may ask for them at any time.
fn push_sizes(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    let stale = view.connected().filter(|copy| {
        let clone = view.living_clone(copy);
        let mut jobs = copy.jobs.iter().filter(|job| !job.deleting && !job.finished);
        clone.is_some_and(|clone| clone.stale_size)
            || jobs.any(|job| job.stale_size && view.carries(job.epoch, job.history))
    });
    stale.map(|copy| DispatchStep::PushSize(copy.cluster)).collect()
}

#[cfg(test)]
mod tests;
