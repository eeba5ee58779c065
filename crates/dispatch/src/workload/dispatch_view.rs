//! What one decision sees: the Workload of the hub and its copies, and what each copy is to that Workload.

use engine::{Time, ids::ClusterId};

use super::{
    dispatch_step::DispatchStep,
    observed::{DispatchTimeouts, LocalWorkload, RemoteConnection, RemoteCopy, RemoteWorkload},
};
use crate::CopyHistory;

/// The inputs of one decision.
pub(super) struct DispatchView<'a> {
    pub(super) hub: &'a LocalWorkload,
    pub(super) copies: &'a [RemoteCopy],
    pub(super) settings: &'a DispatchTimeouts,
    pub(super) now: Time,
}

impl<'a> DispatchView<'a> {
    pub(super) fn connected(&self) -> impl Iterator<Item = &'a RemoteCopy> {
        self.copies.iter().filter(|copy| copy.connection == RemoteConnection::Connected)
    }

    /// The clone of the present epoch, unless it is over or leaves.
    pub(super) fn living_clone(&self, copy: &'a RemoteCopy) -> Option<&'a RemoteWorkload> {
        let clone = copy.clone.as_ref().filter(|clone| clone.lives());
        clone.filter(|clone| self.carries(clone.epoch, clone.history))
    }

    pub(super) fn copy(&self, cluster: ClusterId) -> Option<&'a RemoteCopy> {
        self.copies.iter().find(|copy| copy.cluster == cluster)
    }

    /// Clusters that may run the Workload: the recorded copy, or else the nominated ones. In a race they are those of the
    /// MultiKueueConfig; a cluster that was chosen alone may have the job, so its nomination is cancelled first.
    pub(super) fn chosen(&self) -> Vec<ClusterId> {
        let hub = self.hub;
        let mut nominated = hub.nominated_clusters.clone();
        if hub.race.is_some() && !hub.epoch_raised {
            nominated.retain(|cluster| !hub.unconfigured_clusters.contains(cluster));
        }
        hub.recorded_cluster.map_or(nominated, |cluster| vec![cluster])
    }

    /// Whether a cluster is nominated or recorded.
    pub(super) fn was_chosen(&self, copy: &RemoteCopy) -> bool {
        let mut chosen = self.hub.nominated_clusters.iter().chain(&self.hub.recorded_cluster);
        chosen.any(|cluster| *cluster == copy.cluster)
    }

    /// Time at which a cluster that was not reached since `since` counts as lost.
    fn lost_at(&self, since: Time) -> Time {
        Time(since.0.saturating_add(self.settings.worker_lost_timeout))
    }

    /// Whether an object with this stamp belongs to the present epoch of the hub's Workload.
    pub(super) fn carries(&self, epoch: u64, history: CopyHistory) -> bool {
        epoch == self.hub.epoch && history == CopyHistory::Known
    }

    /// Whether the clone or a job carries the hub's epoch.
    pub(super) fn is_current(&self, copy: &RemoteCopy) -> bool {
        self.has_clone(copy) || self.has_job(copy)
    }

    /// Whether the clone carries the hub's epoch.
    pub(super) fn has_clone(&self, copy: &RemoteCopy) -> bool {
        copy.clone.as_ref().is_some_and(|clone| self.carries(clone.epoch, clone.history))
    }

    /// Whether the clone of the hub's epoch is being deleted. Only a clone keeps an epoch when no copy can run: a set that others
    /// share has none of its own, and would carry every next one as well.
    pub(super) fn has_leaving_clone(&self, copy: &RemoteCopy) -> bool {
        copy.clone.as_ref().is_some_and(|clone| clone.deleting) && self.has_clone(copy)
    }

    /// Whether a job carries the hub's epoch. A set that others share carries every epoch, and starts pods of this Workload with
    /// the clone alone, which may be there unseen on a nominated cluster that is not reached.
    pub(super) fn has_job(&self, copy: &RemoteCopy) -> bool {
        let unseen = copy.connection != RemoteConnection::Connected && self.was_chosen(copy);
        let starts = self.has_clone(copy) || unseen;
        let mut jobs = copy.jobs.iter().filter(|job| starts || !job.shared);
        jobs.any(|job| self.carries(job.epoch, job.history))
    }

    /// Whether a job carries an epoch other than the hub's.
    pub(super) fn has_stale_job(&self, copy: &RemoteCopy) -> bool {
        copy.jobs.iter().any(|job| !self.carries(job.epoch, job.history))
    }

    /// Whether a copy is of a higher epoch, or of a history that the hub does not know.
    pub(super) fn is_unexplained(&self, copy: &RemoteCopy) -> bool {
        // A Workload that does not exist has no epoch to compare with.
        let newer = self.hub.epoch > 0 && copy.newest_epoch() > Some(self.hub.epoch);
        newer || copy.is_of_unknown_history()
    }

    /// Whether only a person decides about a copy.
    pub(super) fn is_disputed(&self, copy: &RemoteCopy) -> bool {
        self.is_unexplained(copy) && !copy.cleanup_confirmed
    }

    /// Whether a disputed copy may run.
    pub(super) fn blocks(&self, copy: &RemoteCopy) -> bool {
        self.is_disputed(copy) && !self.is_lost(copy)
    }

    /// When clusters with disputed copies count as lost, as far as they are not reached.
    pub(super) fn ends_of_blocks(&self) -> impl Iterator<Item = Time> {
        let blocking = self.copies.iter().filter(|copy| self.blocks(copy));
        blocking.filter_map(|copy| self.loss_deadline(copy))
    }

    /// Whether a cluster that is not reached counts as stopped: after a time, or under ExactlyOnce when it is fenced.
    pub(super) fn is_lost(&self, copy: &RemoteCopy) -> bool {
        let fenced = self.hub.exactly_once.then_some(copy.lease.fenced);
        copy.connection
            .lost_since()
            .is_some_and(|since| fenced.unwrap_or_else(|| self.now >= self.lost_at(since)))
    }

    /// When a cluster that is not reached counts as lost. Under ExactlyOnce no time alone decides it.
    pub(super) fn loss_deadline(&self, copy: &RemoteCopy) -> Option<Time> {
        let since = copy.connection.lost_since()?;
        (!self.hub.exactly_once).then(|| self.lost_at(since))
    }

    /// The next epoch: above that of the hub, and above that of every copy that was observed and is believed.
    pub(super) fn raise_epoch(&self) -> DispatchStep {
        let observed =
            self.copies.iter().filter_map(|copy| copy.newest_believed_epoch(self.hub.epoch)).max();
        let highest = self.hub.epoch.max(self.hub.highest_epoch).max(observed.unwrap_or(0));
        DispatchStep::RaiseEpoch(highest.saturating_add(1))
    }
}

/// Adds a step that waits for the earliest deadline.
pub(super) fn with_deadline(
    mut steps: Vec<DispatchStep>,
    deadlines: impl IntoIterator<Item = Time>,
) -> Vec<DispatchStep> {
    steps.extend(deadlines.into_iter().min().map(DispatchStep::WaitUntil));
    steps
}
