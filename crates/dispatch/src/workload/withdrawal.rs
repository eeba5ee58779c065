//! Withdrawal of an evicted Workload, and the proof that nothing runs.
//!
//! A connected cluster is quiet if it has no copy and no unanswered create. A disconnected cluster is quiet if no
//! create was sent with this epoch, or if it is lost (KeepRunning: the old copy may still run). A cluster that was not
//! listed yet is quiet once it is lost. The epoch is raised, and then the quota released, only after all clusters are
//! quiet. A clone that is being deleted counts as gone once its job is: a finalizer may keep it for ever if the program that
//! removes it is dead, and without a job it starts nothing. Source: docs/reference/dispatch.md §6, §8.

use engine::Time;

use crate::CopyHistory;

use super::{
    DispatchStep, RemoteConnection, RemoteCopy, RemoteWorkload,
    dispatch_view::{DispatchView, with_deadline},
    removal,
};

/// Whether a copy can still run.
pub(super) enum RemoteActivity {
    /// No copy can run.
    None,
    /// A copy may run until it is deleted or observed as gone.
    Possible,
    /// A copy may run until this time.
    PossibleUntil(Time),
}

/// Steps up to [`DispatchStep::Withdrawn`].
pub(super) fn withdraw(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    let steps = removal::removals(view, view.copies.iter());
    match remote_activity(view, RemoteCopy::is_empty) {
        RemoteActivity::None => vec![finish_withdrawal(view)],
        RemoteActivity::Possible => steps,
        RemoteActivity::PossibleUntil(deadline) => with_deadline(steps, [deadline]),
    }
}

/// Steps of a Workload without copies to keep. Only dispatch reports that the pods of a dispatched job are gone;
/// the engine releases the Workload after that.
pub(super) fn clean_up(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    // Quota was given back without a withdrawal, as by a set that is scaled to zero. The next copies get another epoch than
    // those on a cluster that is not reached, which may come back with them, and than a clone that a finalizer keeps.
    let remains = view.copies.iter().any(|copy| match copy.connection {
        RemoteConnection::Connected => copy.is_empty() && view.has_leaving_clone(copy),
        _ => view.is_current(copy),
    });
    if view.hub.exists && remains && !view.hub.epoch_raised {
        return vec![view.raise_epoch()];
    }
    let steps = removal::removals(view, view.copies.iter());
    if !view.hub.job.exists || !view.hub.job.active {
        return steps;
    }
    match remote_activity(view, RemoteCopy::is_empty) {
        RemoteActivity::None => vec![DispatchStep::ClearActivePods],
        RemoteActivity::Possible => steps,
        RemoteActivity::PossibleUntil(deadline) => with_deadline(steps, [deadline]),
    }
}

fn finish_withdrawal(view: &DispatchView<'_>) -> DispatchStep {
    // The epoch is written before the release, so that a late create of the old epoch is recognised as stale.
    if !view.hub.epoch_raised {
        view.raise_epoch()
    } else if view.hub.job.exists && view.hub.job.active {
        DispatchStep::ClearActivePods
    } else {
        DispatchStep::Withdrawn
    }
}

/// Whether a copy can run on any cluster. `done` is the condition for a connected cluster.
pub(super) fn remote_activity(
    view: &DispatchView<'_>,
    done: impl Fn(&RemoteCopy) -> bool,
) -> RemoteActivity {
    // A nominated or recorded cluster without an observation may have a copy.
    let is_unobserved = |cluster| view.copy(cluster).is_none();
    let mut possible = view
        .hub
        .nominated_clusters
        .iter()
        .chain(&view.hub.recorded_cluster)
        .any(|&cluster| is_unobserved(cluster));
    let mut deadline = None;
    for copy in view.copies {
        match copy_activity(view, copy, &done) {
            RemoteActivity::None => {}
            RemoteActivity::Possible => possible = true,
            RemoteActivity::PossibleUntil(time) => {
                deadline = Some(deadline.map_or(time, |old: Time| old.min(time)));
            }
        }
    }
    match (deadline, possible) {
        // Only a deadline needs a timer: changes of the other copies evaluate the Workload.
        (Some(deadline), _) => RemoteActivity::PossibleUntil(deadline),
        (None, true) => RemoteActivity::Possible,
        (None, false) => RemoteActivity::None,
    }
}

/// Whether a withdrawal waits for a copy.
pub(super) fn is_awaited(view: &DispatchView<'_>, copy: &RemoteCopy) -> bool {
    !matches!(copy_activity(view, copy, RemoteCopy::is_empty), RemoteActivity::None)
}

fn copy_activity(
    view: &DispatchView<'_>,
    copy: &RemoteCopy,
    done: impl Fn(&RemoteCopy) -> bool,
) -> RemoteActivity {
    match copy.connection {
        RemoteConnection::Connected if copy.creates_answered && done(copy) => RemoteActivity::None,
        // A missing object is no proof that nothing runs while a create is not settled.
        RemoteConnection::Connected => RemoteActivity::Possible,
        RemoteConnection::NotSynced { .. } if view.is_lost(copy) => RemoteActivity::None,
        // Before the first list is complete, it is none at all.
        RemoteConnection::NotSynced { .. } => activity_until_lost(view, copy),
        RemoteConnection::Disconnected { .. } => activity_of_disconnected(view, copy),
    }
}

/// Whether a disconnected cluster counts as stopped. Copies of an earlier epoch were settled before that epoch
/// ended.
fn activity_of_disconnected(view: &DispatchView<'_>, copy: &RemoteCopy) -> RemoteActivity {
    let is_relevant = view.is_current(copy) || view.was_chosen(copy);
    if !is_relevant || !view.hub.create_sent || view.is_lost(copy) {
        RemoteActivity::None
    } else {
        activity_until_lost(view, copy)
    }
}

fn activity_until_lost(view: &DispatchView<'_>, copy: &RemoteCopy) -> RemoteActivity {
    view.loss_deadline(copy).map_or(RemoteActivity::Possible, RemoteActivity::PossibleUntil)
}

impl RemoteCopy {
    /// Whether the cluster has no copy that runs or can start. The pods of a set that others share end with the clone.
    pub(super) fn is_empty(&self) -> bool {
        let leaves = |clone: &RemoteWorkload| clone.deleting && self.jobs.is_empty();
        self.clone.as_ref().is_none_or(leaves) && !self.has_own_job()
    }

    /// Whether the cluster has a job that goes with this Workload.
    pub(super) fn has_own_job(&self) -> bool {
        self.jobs.iter().any(|job| !job.shared)
    }

    /// The highest epoch of clone and jobs.
    pub(super) fn newest_epoch(&self) -> Option<u64> {
        self.epochs().max()
    }

    /// The epochs of clone and jobs.
    pub(super) fn epochs(&self) -> impl Iterator<Item = u64> {
        let jobs = self.jobs.iter().map(|job| job.epoch);
        jobs.chain(self.clone.as_ref().map(|clone| clone.epoch))
    }

    /// Whether clone or job are of a history that the hub does not know.
    pub(super) fn is_of_unknown_history(&self) -> bool {
        let jobs = self.jobs.iter().map(|job| job.history);
        let mut all = jobs.chain(self.clone.as_ref().map(|clone| clone.history));
        all.any(|history| history == CopyHistory::Unknown)
    }

    /// Whether a job is not being deleted.
    pub(super) fn has_live_job(&self) -> bool {
        self.jobs.iter().any(|job| !job.deleting && !job.shared)
    }
}
