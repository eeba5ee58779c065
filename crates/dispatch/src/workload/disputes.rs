//! Copies that only a person decides about, and the next epoch (docs/reference/dispatch.md §6, §9).
//!
//! A worker writes what it likes on the copies that it has. An epoch far above that of the hub is none that this hub or an earlier
//! state of it has given out, so it is disputed like any higher one, and counts neither for the next epoch nor for how long a
//! Workload may be observed late: it would use up the numbers.

use engine::{Time, ids::ClusterId};

use super::{
    DispatchCheckState, DispatchStep, DispatchTimeouts, LocalWorkload, RemoteCopy,
    dispatch_view::DispatchView, withdrawal,
};

/// How far above the hub's epoch one of a copy is believed. Each dispatch raises the epoch by one.
const MAX_EPOCH_LEAD: u64 = 1 << 16;

/// The clusters with a copy that only a person decides about, and that keeps a Workload from being dispatched or, if it is
/// evicted, from giving its quota back.
#[must_use]
pub fn blocking_clusters(
    hub: &LocalWorkload,
    copies: &[RemoteCopy],
    settings: &DispatchTimeouts,
    now: Time,
) -> Vec<ClusterId> {
    let view = DispatchView { hub, copies, settings, now };
    let is_due = hub.quota_reserved && hub.check == DispatchCheckState::Pending;
    let is_over = hub.finished || !hub.exists;
    // The Workload may be observed late.
    let may_be_late = hub.newer_copy_until.is_some_and(|until| now < until);
    let waits = !hub.evicted && (hub.awaits_other_checks || hub.recorded_cluster.is_some());
    let is_asked = is_due && !is_over && !may_be_late && !waits;
    let blocks = |copy: &&RemoteCopy| {
        view.blocks(copy) && (!hub.evicted || withdrawal::is_awaited(&view, copy))
    };
    copies.iter().filter(|_| is_asked).filter(blocks).map(|copy| copy.cluster).collect()
}

impl RemoteCopy {
    /// The highest epoch of clone and jobs that a hub with this epoch may have given out.
    #[must_use]
    pub fn newest_believed_epoch(&self, hub: u64) -> Option<u64> {
        let most = hub.saturating_add(MAX_EPOCH_LEAD);
        self.epochs().filter(|epoch| *epoch <= most).max()
    }
}

/// Once a person has confirmed the removal of copies that the hub does not know, the epoch rises above theirs. Then they
/// are copies of an earlier epoch, also after a restart.
pub(super) fn supersede(view: &DispatchView<'_>) -> Option<DispatchStep> {
    let hub = view.hub;
    let confirmed = view.copies.iter().any(|copy| {
        let reaches = copy.newest_believed_epoch(hub.epoch) >= Some(hub.epoch);
        copy.cleanup_confirmed && reaches && view.is_unexplained(copy)
    });
    // With a recorded cluster the epoch would void the copy there; it rises with the next eviction.
    let raises = confirmed && hub.check == DispatchCheckState::Pending;
    raises.then(|| view.raise_epoch())
}
