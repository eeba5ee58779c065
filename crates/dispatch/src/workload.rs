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
//! `worker_lost_timeout`. A create without an answer is a possible copy. The epoch only rises, and rises before the
//! next nomination.

mod assigned;
mod dispatch_step;
mod nomination;
mod observed;
mod removal;
mod withdrawal;

pub use dispatch_step::{DispatchStep, RetryReason};
pub use observed::{
    DispatchCheckState, DispatchTimeouts, LocalJob, LocalWorkload, RemoteConnection, RemoteCopy,
    RemoteJob, RemoteWorkload,
};

use engine::{Time, ids::ClusterId};

/// Returns the steps to take now. `copies` holds every nominated or recorded cluster and every cluster with an object
/// of this Workload, ordered by cluster name; the order breaks ties.
pub fn decide(
    hub: &LocalWorkload,
    copies: &[RemoteCopy],
    settings: &DispatchTimeouts,
    now: Time,
) -> Vec<DispatchStep> {
    let decision = DispatchDecision { hub, copies, settings, now };
    // The final status of the hub's job stays: `clean_up` could still clear its active pods.
    if hub.finished {
        return removal::removals(copies.iter());
    }
    // Absence on the hub is the durable intent to delete copies (docs/reference/dispatch.md §9).
    if !hub.exists || !hub.quota_reserved {
        return decision.clean_up();
    }
    // An eviction resets the check to Pending. Without this order the Workload would be dispatched
    // again while its copies are withdrawn.
    if hub.evicted {
        return decision.withdraw();
    }
    match hub.check {
        DispatchCheckState::Pending => decision.dispatch_nominated(),
        DispatchCheckState::Ready => decision.follow_recorded(),
        // The engine evicts the Workload; then everything is withdrawn.
        DispatchCheckState::Retry | DispatchCheckState::Rejected => Vec::new(),
    }
}

/// The inputs of one decision.
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

    /// Clusters that may run the Workload: the recorded copy, or else the nominated ones.
    fn chosen(&self) -> Vec<ClusterId> {
        match self.hub.recorded_cluster {
            Some(cluster) => vec![cluster],
            None => self.hub.nominated_clusters.clone(),
        }
    }

    /// Time at which a cluster that is disconnected since `since` counts as lost.
    fn lost_at(&self, since: Time) -> Time {
        Time(since.0.saturating_add(self.settings.worker_lost_timeout))
    }

    /// Whether the clone or the job carries the hub's epoch.
    fn is_current(&self, copy: &RemoteCopy) -> bool {
        let epoch = self.hub.epoch;
        copy.clone.as_ref().is_some_and(|clone| clone.epoch == epoch) || self.has_job(copy)
    }

    /// Whether the job carries the hub's epoch.
    fn has_job(&self, copy: &RemoteCopy) -> bool {
        copy.job.is_some_and(|job| job.epoch == self.hub.epoch)
    }

    /// Whether the job carries an epoch other than the hub's.
    fn has_stale_job(&self, copy: &RemoteCopy) -> bool {
        copy.job.is_some() && !self.has_job(copy)
    }
}

/// Adds a step that waits for the earliest deadline.
fn with_deadline(
    mut steps: Vec<DispatchStep>,
    deadlines: impl IntoIterator<Item = Time>,
) -> Vec<DispatchStep> {
    steps.extend(deadlines.into_iter().min().map(DispatchStep::WaitUntil));
    steps
}

#[cfg(test)]
mod tests;
