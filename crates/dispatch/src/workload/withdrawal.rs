//! Withdrawing a Workload that is being evicted, and what counts as stopped.
//!
//! A cluster is empty when it is live, nothing is there and nothing is on its way. One that cannot be reached counts
//! as empty if nothing was ever sent under this epoch, or when it is lost (KeepRunning: the old copy may still run). Only when
//! all are empty is the epoch raised, and only then is the quota released. Source: docs/reference/dispatch.md §6, §8.

use engine::Time;

use super::{
    DispatchDecision, DispatchStep, RemoteCopy, WorkerConnection, removal::removals, with_deadline,
};

/// Whether something can still run on a cluster.
pub(super) enum RemoteActivity {
    /// No.
    None,
    /// It may, until it is deleted, or seen to be gone.
    Possible,
    /// It may until then.
    PossibleUntil(Time),
}

impl DispatchDecision<'_> {
    /// The steps that end with [`DispatchStep::Withdrawn`].
    pub(super) fn withdraw(&self) -> Vec<DispatchStep> {
        let steps = removals(self.copies.iter());
        match self.all_quiet(RemoteCopy::is_empty) {
            RemoteActivity::None => vec![self.release()],
            RemoteActivity::Possible => steps,
            RemoteActivity::PossibleUntil(due) => with_deadline(steps, [due]),
        }
    }

    /// The steps of a Workload that is to have nothing anywhere. Nobody but us says of a dispatched job that its pods are
    /// gone, and the core lets go of a Workload only when they are.
    pub(super) fn clean_up(&self) -> Vec<DispatchStep> {
        let steps = removals(self.copies.iter());
        if !self.hub.job.exists || !self.hub.job.active {
            return steps;
        }
        match self.all_quiet(RemoteCopy::is_empty) {
            RemoteActivity::None => vec![DispatchStep::ClearActivePods],
            RemoteActivity::Possible => steps,
            RemoteActivity::PossibleUntil(due) => with_deadline(steps, [due]),
        }
    }

    fn release(&self) -> DispatchStep {
        if !self.hub.epoch_raised {
            DispatchStep::RaiseEpoch
        } else if self.hub.job.exists && self.hub.job.active {
            DispatchStep::ClearActivePods
        } else {
            DispatchStep::Withdrawn
        }
    }

    /// Whether nothing can run anywhere. `done` says it of a live cluster.
    pub(super) fn all_quiet(&self, done: impl Fn(&RemoteCopy) -> bool) -> RemoteActivity {
        let unknown = |cluster| self.copy(cluster).is_none();
        let mut open = self
            .hub
            .nominated_clusters
            .iter()
            .chain(&self.hub.recorded_cluster)
            .any(|&one| unknown(one));
        let mut due = None;
        for copy in self.copies {
            match self.quiet(copy, &done) {
                RemoteActivity::None => {}
                RemoteActivity::Possible => open = true,
                RemoteActivity::PossibleUntil(time) => {
                    due = Some(due.map_or(time, |old: Time| old.min(time)));
                }
            }
        }
        match (due, open) {
            (Some(due), _) => RemoteActivity::PossibleUntil(due),
            (None, true) => RemoteActivity::Possible,
            (None, false) => RemoteActivity::None,
        }
    }

    fn quiet(&self, copy: &RemoteCopy, done: impl Fn(&RemoteCopy) -> bool) -> RemoteActivity {
        match copy.connection {
            WorkerConnection::Connected if copy.creates_answered && done(copy) => {
                RemoteActivity::None
            }
            WorkerConnection::Connected | WorkerConnection::NotSynced => RemoteActivity::Possible,
            WorkerConnection::Disconnected { since } => self.written_off(copy, since),
        }
    }

    /// Whether a cluster that cannot be reached may be given up. What an earlier epoch left there was given up before.
    fn written_off(&self, copy: &RemoteCopy, since: Time) -> RemoteActivity {
        let chosen = self.hub.nominated_clusters.iter().chain(&self.hub.recorded_cluster);
        let matters = self.is_current(copy) || chosen.into_iter().any(|&one| one == copy.cluster);
        let due = self.lost_at(since);
        if !matters || !self.hub.create_sent || self.now >= due {
            RemoteActivity::None
        } else {
            RemoteActivity::PossibleUntil(due)
        }
    }
}

impl RemoteCopy {
    /// Nothing is seen there.
    pub(super) fn is_empty(&self) -> bool {
        self.clone.is_none() && self.job.is_none()
    }
}
