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
mod moved;
mod nomination;
mod observed;
mod preemption_gates;
mod removal;
mod takeover;
mod withdrawal;

pub use dispatch_step::{DispatchStep, RetryReason};
pub use moved::MoveProgress;
pub use observed::{
    DispatchCheckState, DispatchTimeouts, LocalJob, LocalWorkload, RemoteConnection, RemoteCopy,
    RemoteJob, RemoteLease, RemoteWorkload, SlicePredecessor, StampState,
};
pub use preemption_gates::CloneGate;

use engine::{Time, ids::ClusterId};

use crate::CopyHistory;

/// Returns the steps to take now. `copies` holds every nominated or recorded cluster and every cluster with an object
/// of this Workload, ordered by cluster name; the order breaks ties.
pub fn decide(
    hub: &LocalWorkload,
    copies: &[RemoteCopy],
    settings: &DispatchTimeouts,
    now: Time,
) -> Vec<DispatchStep> {
    let decision = DispatchDecision { hub, copies, settings, now };
    // A process that begins to lead may see a copy before the Workload that it was made for
    // (docs/reference/dispatch.md §6).
    if let Some(until) = hub.newer_copy_until.filter(|until| now < *until) {
        return vec![DispatchStep::WaitUntil(until)];
    }
    // The final status of the hub's job stays: `clean_up` could still clear its active pods.
    if hub.finished {
        return decision.removals(copies.iter());
    }
    // Absence on the hub is the durable intent to delete copies (docs/reference/dispatch.md §9).
    if !hub.exists {
        return decision.clean_up();
    }
    // Before anything is removed: what has succeeded is not done again.
    if let Some(step) = decision.adopt() {
        return vec![step];
    }
    if !hub.quota_reserved {
        return decision.clean_up();
    }
    // An eviction resets the check to Pending. Without this order the Workload would be dispatched
    // again while its copies are withdrawn.
    if hub.evicted {
        return decision.withdraw();
    }
    if let Some(step) = decision.supersede() {
        return vec![step];
    }
    let mut steps = decision.push_priorities();
    steps.extend(decision.push_sizes());
    steps.extend(decision.push_stamps());
    steps.extend(decision.dispatch());
    decision.create_from_own_version(steps)
}

/// The inputs of one decision.
struct DispatchDecision<'a> {
    hub: &'a LocalWorkload,
    copies: &'a [RemoteCopy],
    settings: &'a DispatchTimeouts,
    now: Time,
}

impl<'a> DispatchDecision<'a> {
    /// Steps of a Workload that holds quota, by its check.
    fn dispatch(&self) -> Vec<DispatchStep> {
        let Self { hub, copies, .. } = *self;
        match hub.check {
            // A later slice has the cluster of its predecessor from the start.
            DispatchCheckState::Pending
                if hub.recorded_cluster.is_some()
                    && hub.predecessor == SlicePredecessor::Absent
                    && !self.is_recorded_slice_to_create() =>
            {
                // A slice may still wait for its admission.
                self.open_gate().into_iter().chain(self.follow_unready()).collect()
            }
            // Nothing may start on a worker before, say, its nodes are provisioned; what exists there is taken back
            // (docs/reference/multikueue.md §2.4).
            DispatchCheckState::Pending if hub.awaits_other_checks => self.removals(copies.iter()),
            // The jobs of the earlier slice are being removed; then this Workload has jobs of its own.
            DispatchCheckState::Pending if hub.predecessor == SlicePredecessor::Leaves => {
                Vec::new()
            }
            // What the hub does not know of may be this Workload, running.
            DispatchCheckState::Pending if copies.iter().any(|copy| self.blocks(copy)) => {
                with_deadline(Vec::new(), self.ends_of_blocks())
            }
            DispatchCheckState::Pending
                if hub.nominated_clusters.is_empty() && hub.recorded_cluster.is_none() =>
            {
                self.nominate()
            }
            DispatchCheckState::Pending => {
                let changes = self.changes_race().then_some(DispatchStep::Nominate);
                let first = changes.into_iter().chain(self.open_gate());
                first.chain(self.dispatch_nominated()).collect()
            }
            DispatchCheckState::Ready => self.follow_recorded(),
            // The engine evicts the Workload; then everything is withdrawn.
            DispatchCheckState::Retry | DispatchCheckState::Rejected => Vec::new(),
        }
    }

    /// Whether a slice is recorded for the cluster of the one that it has replaced and has no clone there yet. Upstream's manager may
    /// have finished that one already (docs/reference/multikueue.md §2.13).
    fn is_recorded_slice_to_create(&self) -> bool {
        let copy = self.hub.recorded_cluster.and_then(|cluster| self.copy(cluster));
        let is_seen = |copy: &RemoteCopy| copy.connection == RemoteConnection::Connected;
        self.hub.is_slice && copy.is_some_and(|copy| is_seen(copy) && copy.clone.is_none())
    }

    /// A changed priority is no reason to remove running work (docs/reference/multikueue.md §2.3 step 5).
    fn push_priorities(&self) -> Vec<DispatchStep> {
        let stale = self.connected().filter(|copy| {
            let clone = self.living_clone(copy);
            clone.is_some_and(|clone| clone.stale_priority)
        });
        stale.map(|copy| DispatchStep::PushPriority(copy.cluster)).collect()
    }

    /// Neither is another size of an elastic job: its copy may still name an earlier slice. The pods of a further replica of a
    /// set wait for their own clone, so the copy of the set may ask for them at any time.
    fn push_sizes(&self) -> Vec<DispatchStep> {
        let stale = self.connected().filter(|copy| {
            let clone = self.living_clone(copy);
            let mut jobs = copy.jobs.iter().filter(|job| !job.deleting && !job.finished);
            clone.is_some_and(|clone| clone.stale_size)
                || jobs.any(|job| job.stale_size && self.carries(job.epoch, job.history))
        });
        stale.map(|copy| DispatchStep::PushSize(copy.cluster)).collect()
    }

    fn connected(&self) -> impl Iterator<Item = &'a RemoteCopy> {
        self.copies.iter().filter(|copy| copy.connection == RemoteConnection::Connected)
    }

    /// The clone of the present epoch, unless it is over or leaves.
    fn living_clone(&self, copy: &'a RemoteCopy) -> Option<&'a RemoteWorkload> {
        let lives = |clone: &&RemoteWorkload| !clone.deleting && clone.finished.is_none();
        let clone = copy.clone.as_ref().filter(lives);
        clone.filter(|clone| self.carries(clone.epoch, clone.history))
    }

    fn copy(&self, cluster: ClusterId) -> Option<&'a RemoteCopy> {
        self.copies.iter().find(|copy| copy.cluster == cluster)
    }

    /// Clusters that may run the Workload: the recorded copy, or else the nominated ones. In a race they are those of the
    /// MultiKueueConfig; a cluster that was chosen alone may have the job, so its nomination is cancelled first.
    fn chosen(&self) -> Vec<ClusterId> {
        let hub = self.hub;
        let mut nominated = hub.nominated_clusters.clone();
        if hub.race.is_some() && !hub.epoch_raised {
            nominated.retain(|cluster| !hub.unconfigured_clusters.contains(cluster));
        }
        hub.recorded_cluster.map_or(nominated, |cluster| vec![cluster])
    }

    /// Whether a cluster is nominated or recorded.
    fn was_chosen(&self, copy: &RemoteCopy) -> bool {
        let mut chosen = self.hub.nominated_clusters.iter().chain(&self.hub.recorded_cluster);
        chosen.any(|cluster| *cluster == copy.cluster)
    }

    /// Time at which a cluster that was not reached since `since` counts as lost.
    fn lost_at(&self, since: Time) -> Time {
        Time(since.0.saturating_add(self.settings.worker_lost_timeout))
    }

    /// Whether an object with this stamp belongs to the present epoch of the hub's Workload.
    fn carries(&self, epoch: u64, history: CopyHistory) -> bool {
        epoch == self.hub.epoch && history == CopyHistory::Known
    }

    /// Whether the clone or a job carries the hub's epoch.
    fn is_current(&self, copy: &RemoteCopy) -> bool {
        self.has_clone(copy) || self.has_job(copy)
    }

    /// Whether the clone carries the hub's epoch.
    fn has_clone(&self, copy: &RemoteCopy) -> bool {
        copy.clone.as_ref().is_some_and(|clone| self.carries(clone.epoch, clone.history))
    }

    /// Whether the clone of the hub's epoch is being deleted. Only a clone keeps an epoch when no copy can run: a set that others
    /// share has none of its own, and would carry every next one as well.
    fn has_leaving_clone(&self, copy: &RemoteCopy) -> bool {
        copy.clone.as_ref().is_some_and(|clone| clone.deleting) && self.has_clone(copy)
    }

    /// Whether a job carries the hub's epoch. A set that others share carries every epoch, and starts pods of this Workload with
    /// the clone alone, which may be there unseen on a nominated cluster that is not reached.
    fn has_job(&self, copy: &RemoteCopy) -> bool {
        let unseen = copy.connection != RemoteConnection::Connected && self.was_chosen(copy);
        let starts = self.has_clone(copy) || unseen;
        let mut jobs = copy.jobs.iter().filter(|job| starts || !job.shared);
        jobs.any(|job| self.carries(job.epoch, job.history))
    }

    /// Whether a job carries an epoch other than the hub's.
    fn has_stale_job(&self, copy: &RemoteCopy) -> bool {
        copy.jobs.iter().any(|job| !self.carries(job.epoch, job.history))
    }

    /// Whether a copy is of a higher epoch, or of a history that the hub does not know.
    fn is_unexplained(&self, copy: &RemoteCopy) -> bool {
        // A Workload that does not exist has no epoch to compare with.
        let newer = self.hub.epoch > 0 && copy.newest_epoch() > Some(self.hub.epoch);
        newer || copy.is_of_unknown_history()
    }

    /// Whether only a person decides about a copy.
    fn is_disputed(&self, copy: &RemoteCopy) -> bool {
        self.is_unexplained(copy) && !copy.cleanup_confirmed
    }

    /// Whether a disputed copy may run.
    fn blocks(&self, copy: &RemoteCopy) -> bool {
        self.is_disputed(copy) && !self.is_lost(copy)
    }

    /// When clusters with disputed copies count as lost, as far as they are not reached.
    fn ends_of_blocks(&self) -> impl Iterator<Item = Time> {
        let blocking = self.copies.iter().filter(|copy| self.blocks(copy));
        blocking.filter_map(|copy| self.loss_deadline(copy))
    }

    /// Whether a cluster that is not reached counts as stopped: after a time, or under ExactlyOnce when it is fenced.
    fn is_lost(&self, copy: &RemoteCopy) -> bool {
        let fenced = self.hub.exactly_once.then_some(copy.lease.fenced);
        copy.connection
            .lost_since()
            .is_some_and(|since| fenced.unwrap_or_else(|| self.now >= self.lost_at(since)))
    }

    /// When a cluster that is not reached counts as lost. Under ExactlyOnce no time alone decides it.
    fn loss_deadline(&self, copy: &RemoteCopy) -> Option<Time> {
        let since = copy.connection.lost_since()?;
        (!self.hub.exactly_once).then(|| self.lost_at(since))
    }

    /// Once a person has confirmed the removal of copies that the hub does not know, the epoch rises above theirs. Then they
    /// are copies of an earlier epoch, also after a restart.
    fn supersede(&self) -> Option<DispatchStep> {
        let hub = self.hub;
        let confirmed = self.copies.iter().any(|copy| {
            let reaches = copy.newest_epoch() >= Some(hub.epoch);
            copy.cleanup_confirmed && reaches && self.is_unexplained(copy)
        });
        // With a recorded cluster the epoch would void the copy there; it rises with the next eviction.
        let raises = confirmed && hub.check == DispatchCheckState::Pending;
        raises.then(|| self.raise_epoch())
    }

    /// The next epoch: above that of the hub, and above that of every copy that was observed.
    fn raise_epoch(&self) -> DispatchStep {
        let observed = self.copies.iter().filter_map(RemoteCopy::newest_epoch).max();
        let highest = self.hub.epoch.max(self.hub.highest_epoch).max(observed.unwrap_or(0));
        DispatchStep::RaiseEpoch(highest.saturating_add(1))
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
