//! Which clone may preempt on its worker: one at a time (docs/reference/multikueue.md §2.6).
//!
//! Clones are created with a closed gate. Of those that would have to preempt, the gate of the one that has waited longest is
//! opened, and the next one `preemption_timeout` after the last opening. The clones say when that was, so that a restart forgets
//! nothing. With a timeout of 0 a gate is opened as soon as its clone waits for it: nothing else opens what a manager with other
//! gates has closed.

use engine::Time;

use super::{DispatchStep, RemoteConnection, RemoteCopy, dispatch_view::DispatchView, nomination};

/// The hub's preemption gate of a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloneGate {
    /// It has none, or the worker has refused to open it.
    #[default]
    Absent,
    /// It is closed.
    Closed {
        /// Since when the worker would preempt for the clone; `None` if it would not.
        blocked_since: Option<Time>,
    },
    /// It is open.
    Open {
        /// Since when.
        since: Time,
    },
}

/// The gate to open now, or when the next one is.
pub(super) fn open_gate(view: &DispatchView<'_>) -> Option<DispatchStep> {
    if view.hub.awaits_other_checks {
        return None;
    }
    let chosen = view.chosen();
    let copies = || view.copies.iter().filter(|copy| chosen.contains(&copy.cluster));
    // The others are removed now.
    if copies().any(|copy| nomination::admitted_at(view, copy).is_some()) {
        return None;
    }
    // The first of equals is taken, in the order of cluster names.
    let blocked = copies().filter_map(|copy| Some((blocked_since(view, copy)?, copy.cluster)));
    let (_, next) = blocked.min_by_key(|(since, _)| *since)?;
    let last = copies().filter_map(|copy| last_opening(view, copy)).max();
    let due = last.map(|at| Time(at.0.saturating_add(view.settings.preemption_timeout)));
    Some(match due.filter(|due| view.now < *due) {
        Some(due) => DispatchStep::WaitUntil(due),
        None => DispatchStep::OpenPreemptionGate(next),
    })
}

/// Since when a clone waits for its gate.
fn blocked_since(view: &DispatchView<'_>, copy: &RemoteCopy) -> Option<Time> {
    let clone = nomination::usable_clone(view, copy).filter(|clone| clone.lives())?;
    match clone.gate {
        CloneGate::Closed { blocked_since } if copy.connection == RemoteConnection::Connected => {
            blocked_since
        }
        _ => None,
    }
}

/// When the gate of a clone was opened. On a cluster that is not reached it may have been until the connection was lost.
fn last_opening(view: &DispatchView<'_>, copy: &RemoteCopy) -> Option<Time> {
    let clone = copy.clone.as_ref().filter(|clone| view.carries(clone.epoch, clone.history));
    match (clone.map(|clone| clone.gate), copy.connection.lost_since()) {
        (Some(CloneGate::Open { since }), _) => Some(since),
        (Some(CloneGate::Closed { .. }), lost_since) => lost_since,
        (None, lost_since) => lost_since.filter(|_| view.hub.create_sent),
        (Some(CloneGate::Absent), _) => None,
    }
}
