//! What a leader that takes over does before it creates copies (docs/reference/dispatch.md §6-7).
//!
//! It creates nothing from a version of the Workload that a former leader may have changed: it first writes to the
//! Workload, which succeeds on the newest version only. Its watch may lag, and the older version may name another cluster
//! than the one that runs the Workload by now. Under ExactlyOnce a clone that a former leader created, and that no agent
//! has admitted, gets the stamp of the leader that adopts it.

use super::{DispatchStep, RemoteConnection, RemoteCopy, StampState, dispatch_view::DispatchView};

/// Stamps of clones that wait for the present leader. A session that has ended is never stamped again.
pub(super) fn push_stamps(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    let waits = |copy: &&RemoteCopy| {
        let clone = copy.clone.as_ref().filter(|clone| {
            clone.stamp == StampState::OfFormerLeader && !clone.deleting && !clone.evicted
        });
        let is_current = clone.is_some_and(|clone| view.carries(clone.epoch, clone.history));
        let is_open = copy.lease.open && copy.refused.is_none();
        is_current && copy.connection == RemoteConnection::Connected && is_open
    };
    let chosen = view.chosen();
    let copies = view.copies.iter().filter(|copy| chosen.contains(&copy.cluster));
    copies.filter(waits).map(|copy| DispatchStep::Stamp(copy.cluster)).collect()
}

/// Replaces what would be created or stamped from the version of a former leader.
pub(super) fn create_from_own_version(
    view: &DispatchView<'_>,
    mut steps: Vec<DispatchStep>,
) -> Vec<DispatchStep> {
    if view.hub.is_own_version {
        return steps;
    }
    let before = steps.len();
    steps.retain(|step| {
        !matches!(
            step,
            DispatchStep::CreateClone(_) | DispatchStep::CreateJobs(_) | DispatchStep::Stamp(_)
        )
    });
    if steps.len() < before {
        steps.push(DispatchStep::ConfirmVersion);
    }
    steps
}
