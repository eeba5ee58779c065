//! From nomination to recording.
//!
//! A cluster that was chosen by its capacity gets clone and job at once. Under another dispatcher, or with several nominated
//! clusters, they race with clones, and the job follows the recorded cluster. The first cluster that admits its clone wins; the
//! copies of this epoch on the other clusters are removed before it is recorded.
//!
//! If no nominated cluster takes the Workload, the nomination is cancelled: jobs are deleted, the epoch is raised,
//! nomination and quota are given back. The clone with the refusal stays until then, so that a restart in between
//! reads it again; without a job it cannot start anything. Source: docs/reference/dispatch.md §4-6.

use engine::{Time, ids::ClusterId};

use super::{
    DispatchDecision, DispatchStep, RemoteConnection, RemoteCopy, RemoteWorkload, SlicePredecessor,
    StampState, with_deadline, withdrawal::RemoteActivity,
};

/// State of one nominated cluster.
enum NominationProgress {
    /// The cluster may still admit: steps to take, and the deadline.
    Ongoing(Vec<DispatchStep>, Option<Time>),
    /// The cluster does not take the Workload.
    Rejected,
}

impl<'a> DispatchDecision<'a> {
    /// Steps up to [`DispatchStep::SetCheckReady`] or [`DispatchStep::CancelNomination`].
    pub(super) fn dispatch_nominated(&self) -> Vec<DispatchStep> {
        let chosen = self.chosen();
        let elsewhere = self.copies.iter().filter(|copy| !chosen.contains(&copy.cluster));
        let mut steps = self.removals(elsewhere);
        steps.extend(self.decide_among(&chosen));
        steps
    }

    /// Whether a cluster that is not nominated yet may join the race, or a nominated one has left the MultiKueueConfig.
    pub(super) fn changes_race(&self) -> bool {
        let hub = self.hub;
        let joins = |race: &Vec<ClusterId>| {
            race.iter().any(|cluster| !hub.nominated_clusters.contains(cluster))
        };
        let leaves = !hub.unconfigured_clusters.is_empty();
        // A raised epoch means that the nomination is being cancelled.
        hub.race.as_ref().is_some_and(|race| leaves || joins(race)) && !hub.epoch_raised
    }

    /// Nominates a cluster once no earlier copy is left: its epoch would be that of the new one.
    pub(super) fn nominate(&self) -> Vec<DispatchStep> {
        // Without a cluster the Workload keeps its quota, as upstream's does.
        if self.hub.race.as_ref().is_some_and(Vec::is_empty) {
            return self.removals(self.copies.iter());
        }
        match self.remote_activity(RemoteCopy::is_empty) {
            // A clone that a finalizer keeps is no copy of the next dispatch.
            RemoteActivity::None if self.connected().any(|copy| self.has_leaving_clone(copy)) => {
                vec![self.raise_epoch()]
            }
            RemoteActivity::None => vec![DispatchStep::Nominate],
            RemoteActivity::Possible => self.removals(self.copies.iter()),
            RemoteActivity::PossibleUntil(due) => {
                with_deadline(self.removals(self.copies.iter()), [due])
            }
        }
    }

    fn decide_among(&self, chosen: &[ClusterId]) -> Vec<DispatchStep> {
        let copies: Vec<&RemoteCopy> =
            chosen.iter().filter_map(|&cluster| self.copy(cluster)).collect();
        let single_cluster = chosen.len() == 1 && self.hub.race.is_none();
        // A raised epoch in a nominated Workload means that the cancellation has begun.
        if self.hub.epoch_raised {
            return self.stop_and_cancel(&copies, single_cluster);
        }
        // A clone may be admitted before the API server has answered the creates of all jobs.
        let extends = self.hub.predecessor == SlicePredecessor::Runs;
        let complete =
            |winner: &&RemoteCopy| extends || !winner.missing_job && self.has_job(winner);
        let winner = self.winner(&copies).filter(|winner| !single_cluster || complete(winner));
        let winner = winner.filter(|winner| !self.is_unconfigured(winner));
        if let Some(winner) = winner {
            // Copies on clusters that are not chosen are removed by `dispatch_nominated`.
            return self.record_alone(winner, |copy| chosen.contains(&copy.cluster));
        }
        let progress: Vec<NominationProgress> =
            copies.iter().map(|copy| self.progress(copy, single_cluster)).collect();
        let all_rejected =
            progress.iter().all(|cluster| matches!(cluster, NominationProgress::Rejected));
        // `all` holds for an empty list, too: without a nomination there is nothing to cancel.
        if all_rejected && !copies.is_empty() {
            return self.stop_and_cancel(&copies, single_cluster);
        }
        let (mut steps, mut deadline) = (Vec::new(), None);
        for progress in progress {
            if let NominationProgress::Ongoing(more, until) = progress {
                steps.extend(more);
                deadline = deadline.into_iter().chain(until).min();
            }
        }
        with_deadline(steps, deadline)
    }

    /// Whether a nominated cluster has left the MultiKueueConfig.
    fn is_unconfigured(&self, copy: &RemoteCopy) -> bool {
        self.hub.unconfigured_clusters.contains(&copy.cluster)
    }

    /// The cluster that admitted first.
    pub(super) fn winner(&self, copies: &[&'a RemoteCopy]) -> Option<&'a RemoteCopy> {
        let admitted = copies.iter().filter_map(|copy| Some((self.admitted_at(copy)?, *copy)));
        let position =
            |copy: &RemoteCopy| self.copies.iter().position(|other| other.cluster == copy.cluster);
        // Condition times have whole seconds, so ties occur. The order of `copies` breaks them in
        // the same way after a restart.
        admitted.min_by_key(|(at, copy)| (*at, position(copy))).map(|(_, copy)| copy)
    }

    /// Admission time of the clone. A cluster whose API server refuses the job has nothing to run and does not count.
    pub(super) fn admitted_at(&self, copy: &RemoteCopy) -> Option<Time> {
        let can_start = copy.connection == RemoteConnection::Connected && copy.refused.is_none();
        let clone = self.usable_clone(copy).filter(|_| can_start)?;
        let has_ended = clone.evicted || clone.stamp == StampState::Ended;
        let is_valid = !clone.deleting && !has_ended && clone.refused.is_none();
        clone.admitted_at.filter(|_| is_valid)
    }

    fn usable_clone<'c>(&self, copy: &'c RemoteCopy) -> Option<&'c RemoteWorkload> {
        let carries = |clone: &&RemoteWorkload| self.carries(clone.epoch, clone.history);
        copy.clone.as_ref().filter(carries).filter(|clone| clone.same_spec)
    }

    /// Records the winner once no other cluster has a copy of this epoch. Until then the copies that `removed` names are removed.
    pub(super) fn record_alone(
        &self,
        winner: &RemoteCopy,
        removed: impl Fn(&RemoteCopy) -> bool,
    ) -> Vec<DispatchStep> {
        let others = || self.copies.iter().filter(|copy| copy.cluster != winner.cluster);
        if others().any(|copy| self.may_compete(copy)) {
            return self.removals(others().filter(|copy| removed(copy)));
        }
        vec![DispatchStep::SetCheckReady(winner.cluster)]
    }

    /// Whether a cluster other than the winner has a copy of this epoch that has to be removed first.
    fn may_compete(&self, copy: &RemoteCopy) -> bool {
        // On a disconnected cluster a clone alone starts nothing, but a job may run there until the
        // cluster counts as lost.
        copy.connection == RemoteConnection::Connected
            && (!copy.creates_answered || self.is_current(copy) && !copy.is_empty())
            || self.has_job(copy) && !self.is_lost(copy)
    }

    fn progress(&self, copy: &RemoteCopy, single_cluster: bool) -> NominationProgress {
        match copy.connection {
            // An incomplete list proves neither presence nor absence: wait for it, but not longer than for a connection.
            RemoteConnection::NotSynced { .. } if !self.is_lost(copy) => {
                NominationProgress::Ongoing(Vec::new(), self.loss_deadline(copy))
            }
            // A create may have reached the cluster, so a copy may run there until the cluster counts as lost.
            RemoteConnection::Disconnected { .. }
                if self.hub.create_sent && !self.is_lost(copy) =>
            {
                NominationProgress::Ongoing(Vec::new(), self.loss_deadline(copy))
            }
            // No create was sent, or the cluster is lost: another cluster may be nominated.
            RemoteConnection::NotSynced { .. } | RemoteConnection::Disconnected { .. } => {
                NominationProgress::Rejected
            }
            RemoteConnection::Connected if self.is_rejected(copy, single_cluster) => {
                NominationProgress::Rejected
            }
            RemoteConnection::Connected => {
                let deadline = self.admission_deadline(copy, single_cluster);
                NominationProgress::Ongoing(self.create(copy, single_cluster), deadline)
            }
        }
    }

    /// A cluster that was chosen by its room has to admit soon; in a race its queues may need longer. The nodes of an autoscaler
    /// take minutes or hours: they are waited for as long as the agent says so, which a dead one does not.
    fn admission_deadline(&self, copy: &RemoteCopy, single_cluster: bool) -> Option<Time> {
        if !single_cluster {
            return self.hub.race_until;
        }
        let chosen = Time(self.hub.nominated_at.0.saturating_add(self.settings.admission_timeout));
        let asked = self.usable_clone(copy).and_then(|clone| clone.awaits_nodes_until);
        Some(asked.map_or(chosen, |until| until.max(chosen)))
    }

    /// Whether a connected cluster refuses the Workload, exceeds the admission timeout, or has left the MultiKueueConfig.
    fn is_rejected(&self, copy: &RemoteCopy, single_cluster: bool) -> bool {
        let against =
            self.usable_clone(copy).and_then(|clone| refusal_of(clone, single_cluster)).is_some();
        let ended = self.usable_clone(copy).is_some_and(|clone| clone.stamp == StampState::Ended);
        let deadline = self.admission_deadline(copy, single_cluster);
        let late = deadline.is_some_and(|deadline| self.now >= deadline);
        copy.refused.is_some() || against || ended || late || self.is_unconfigured(copy)
    }

    /// Creates missing copies after stale copies are removed.
    fn create(&self, copy: &RemoteCopy, single_cluster: bool) -> Vec<DispatchStep> {
        let stale_clone = copy.clone.is_some() && self.usable_clone(copy).is_none();
        if stale_clone || self.has_stale_job(copy) {
            return self.removal(copy).into_iter().collect();
        }
        let deleting = copy.clone.as_ref().is_some_and(|clone| clone.deleting)
            || copy.jobs.iter().any(|job| job.deleting);
        let closed = self.hub.exactly_once && !copy.lease.open;
        let waits = deleting || closed || !copy.creates_answered;
        if waits || self.started_elsewhere(copy.cluster) {
            return Vec::new();
        }
        let clone = copy.clone.is_none().then_some(DispatchStep::CreateClone(copy.cluster));
        // In a race the jobs follow the recorded cluster, so that only one copy starts.
        // Those of an earlier slice are there already.
        let own_jobs = self.hub.predecessor == SlicePredecessor::Absent;
        let jobs = (single_cluster && own_jobs && copy.missing_job)
            .then_some(DispatchStep::CreateJobs(copy.cluster));
        clone.into_iter().chain(jobs).collect()
    }

    /// Whether a cluster that is no longer nominated has a job of this epoch.
    fn started_elsewhere(&self, here: ClusterId) -> bool {
        let mut others = self.copies.iter().filter(|copy| copy.cluster != here);
        others.any(|copy| self.has_job(copy) && !self.is_lost(copy))
    }

    /// Deletes the jobs and gives the nomination back.
    fn stop_and_cancel(&self, copies: &[&RemoteCopy], single_cluster: bool) -> Vec<DispatchStep> {
        let jobs = copies.iter().filter(|copy| copy.connection == RemoteConnection::Connected);
        let stop = jobs.filter(|copy| copy.has_live_job() && !self.is_disputed(copy));
        let stop: Vec<DispatchStep> =
            stop.map(|copy| DispatchStep::DeleteJobs(copy.cluster)).collect();
        // Only the jobs have to be gone. The clone stays, because it holds the refusal.
        match self.remote_activity(|copy| !copy.has_own_job()) {
            RemoteActivity::Possible => stop,
            RemoteActivity::PossibleUntil(deadline) => with_deadline(stop, [deadline]),
            // The epoch rises before any further nomination (docs/reference/dispatch.md §6).
            RemoteActivity::None if !self.hub.epoch_raised => vec![self.raise_epoch()],
            RemoteActivity::None => copies
                .first()
                .map(|copy| self.cancel_nomination(copy, single_cluster))
                .into_iter()
                .collect(),
        }
    }

    /// The refusal is still on the clone of the previous epoch.
    fn cancel_nomination(&self, copy: &RemoteCopy, single_cluster: bool) -> DispatchStep {
        let refusal_of = || copy.clone.as_ref().and_then(|clone| refusal_of(clone, single_cluster));
        let why =
            copy.refused.clone().or_else(refusal_of).unwrap_or_else(|| match copy.connection {
                _ if self.is_unconfigured(copy) => UNCONFIGURED.into(),
                RemoteConnection::NotSynced { .. } | RemoteConnection::Disconnected { .. } => {
                    LOST.into()
                }
                RemoteConnection::Connected => LATE.into(),
            });
        DispatchStep::CancelNomination { cluster: copy.cluster, why }
    }
}

const LOST: &str = "the worker was lost before it admitted the workload";
pub(super) const LATE: &str = "not admitted by the worker in time";
const UNCONFIGURED: &str = "it was taken out of the MultiKueueConfig";
const FINISHED: &str = "finished on the worker before it was admitted there";
const EVICTED: &str = "evicted on the worker before it was recorded on the manager";

/// Reason on the clone against its cluster. In a race an evicted clone is requeued on its worker.
pub(super) fn refusal_of(clone: &RemoteWorkload, single_cluster: bool) -> Option<Box<str>> {
    let finished = clone.finished.is_some().then_some(FINISHED);
    let evicted = (single_cluster && clone.evicted).then_some(EVICTED);
    clone.refused.clone().or_else(|| finished.or(evicted).map(Into::into))
}
