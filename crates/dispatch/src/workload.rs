//! One Workload's life over clusters, as a function of what is seen.
//!
//! ```text
//!             nominated            recorded                    finished
//! (no quota) ----------> Pending ----------> Ready ----------------------> (clean up)
//!     ^                     |                  | lost, gone, evicted
//!     |       Unplace       v                  v
//!     +-- raise epoch <-- stop           Retry, evicted --> stop and remove everywhere --> raise epoch --+
//!     +-------------------------------------------- Withdrawn -----------------------------------------+
//! ```
//! [`decide`] is called whenever anything changed, also after a restart with nothing but what the API servers hold, and says what is
//! still to do. Source: docs/reference/dispatch.md §5-8.
//!
//! Invariants: what is recorded decides (cluster name, epoch), never what was seen first. Nothing starts elsewhere before
//! everything that could run is confirmed to be stopped, or its cluster was lost for `lost_after`. A create that is on its
//! way is something that could run. The epoch only rises, and rises before the next nomination.

mod assigned;
mod dispatch_step;
mod nomination;
mod observed;
mod removal;
mod withdrawal;

pub use dispatch_step::{DispatchStep, RetryReason};
pub use observed::{
    DispatchCheckState, DispatchTimeouts, LocalJob, LocalWorkload, RemoteCopy, RemoteJob,
    RemoteWorkload, WorkerConnection,
};

use engine::{Time, ids::ClusterId};

/// What to do now. `copies` holds every cluster that is nominated or recorded, and every cluster where something of this
/// Workload was seen, in the order of names: it breaks ties.
pub fn decide(
    hub: &LocalWorkload,
    copies: &[RemoteCopy],
    settings: &DispatchTimeouts,
    now: Time,
) -> Vec<DispatchStep> {
    let life = DispatchDecision { hub, copies, settings, now };
    if hub.finished {
        return removal::removals(copies.iter());
    }
    if !hub.exists || !hub.quota_reserved {
        return life.clean_up();
    }
    if hub.evicted {
        return life.withdraw();
    }
    match hub.check {
        DispatchCheckState::Pending => life.nominated(),
        DispatchCheckState::Ready => life.recorded(),
        // The core evicts; then everything is withdrawn.
        DispatchCheckState::Retry | DispatchCheckState::Rejected => Vec::new(),
    }
}

/// Everything a decision stands on.
struct DispatchDecision<'a> {
    hub: &'a LocalWorkload,
    copies: &'a [RemoteCopy],
    settings: &'a DispatchTimeouts,
    now: Time,
}

impl<'a> DispatchDecision<'a> {
    fn copy(&self, cluster: ClusterId) -> Option<&'a RemoteCopy> {
        self.copies.iter().find(|copy| copy.cluster == cluster)
    }

    /// The clusters that may run the Workload. A recorded one is the only one.
    fn chosen(&self) -> Vec<ClusterId> {
        match self.hub.recorded_cluster {
            Some(cluster) => vec![cluster],
            None => self.hub.nominated_clusters.clone(),
        }
    }

    /// When a cluster that cannot be reached since then is lost.
    fn lost_at(&self, since: Time) -> Time {
        Time(since.0.saturating_add(self.settings.worker_lost_timeout))
    }

    /// Whether a copy carries the hub's epoch in its clone or job.
    fn is_current(&self, copy: &RemoteCopy) -> bool {
        let epoch = self.hub.epoch;
        copy.clone.as_ref().is_some_and(|clone| clone.epoch == epoch) || self.has_job(copy)
    }

    /// Whether its job carries the hub's epoch.
    fn has_job(&self, copy: &RemoteCopy) -> bool {
        copy.job.is_some_and(|job| job.epoch == self.hub.epoch)
    }

    /// Whether its job carries another epoch than the hub's.
    fn has_stale_job(&self, copy: &RemoteCopy) -> bool {
        copy.job.is_some() && !self.has_job(copy)
    }
}

/// Adds the earliest moment at which something is due.
fn with_deadline(
    mut steps: Vec<DispatchStep>,
    due: impl IntoIterator<Item = Time>,
) -> Vec<DispatchStep> {
    steps.extend(due.into_iter().min().map(DispatchStep::WaitUntil));
    steps
}

#[cfg(test)]
mod tests;
