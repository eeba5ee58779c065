//! From nomination to the record.
//!
//! One nominated cluster gets clone and job at once. Several race with clones, and the job follows the record. The
//! cluster that admitted first wins; what the others have at this epoch goes before the winner is recorded.
//!
//! When no nominated cluster will take the Workload it is unplaced: jobs are stopped, the epoch is raised, the nomination is given
//! back. The clone that says why stays until then, so that a restart in between changes nothing; without a job it
//! can start nothing. Source: docs/reference/dispatch.md §4-6.

use engine::{Time, ids::ClusterId};

use super::{
    DispatchDecision, DispatchStep, RemoteCopy, RemoteWorkload, WorkerConnection,
    removal::{removal, removals},
    with_deadline,
    withdrawal::RemoteActivity,
};

/// What becomes of one nominated cluster.
enum NominationProgress {
    /// It goes on, with these steps, and is looked at again when due.
    Ongoing(Vec<DispatchStep>, Option<Time>),
    /// It will not take the Workload.
    Rejected,
}

impl<'a> DispatchDecision<'a> {
    /// The steps that end with [`DispatchStep::SetCheckReady`] or [`DispatchStep::CancelNomination`].
    pub(super) fn nominated(&self) -> Vec<DispatchStep> {
        let chosen = self.chosen();
        let elsewhere = self.copies.iter().filter(|copy| !chosen.contains(&copy.cluster));
        let mut steps = removals(elsewhere);
        steps.extend(self.decide_among(&chosen));
        steps
    }

    fn decide_among(&self, chosen: &[ClusterId]) -> Vec<DispatchStep> {
        let copies: Vec<&RemoteCopy> = chosen.iter().filter_map(|&one| self.copy(one)).collect();
        let alone = chosen.len() == 1;
        if self.hub.epoch_raised {
            return self.unplace(&copies, alone);
        }
        // A clone may be admitted before the API server has answered whether it takes the job.
        let winner = self.winner(&copies).filter(|winner| !alone || self.has_job(winner));
        if let Some(winner) = winner {
            return self.elect(winner);
        }
        let prospects: Vec<NominationProgress> =
            copies.iter().map(|copy| self.prospect(copy, alone)).collect();
        let hopeless = prospects.iter().all(|one| matches!(one, NominationProgress::Rejected));
        if hopeless && !copies.is_empty() {
            return self.unplace(&copies, alone);
        }
        let (mut steps, mut due) = (Vec::new(), None);
        for prospect in prospects {
            if let NominationProgress::Ongoing(more, until) = prospect {
                steps.extend(more);
                due = due.into_iter().chain(until).min();
            }
        }
        with_deadline(steps, due)
    }

    /// The cluster that admitted first.
    fn winner(&self, copies: &[&'a RemoteCopy]) -> Option<&'a RemoteCopy> {
        let admitted = copies.iter().filter_map(|copy| Some((self.admitted_at(copy)?, *copy)));
        let position =
            |copy: &RemoteCopy| self.copies.iter().position(|one| one.cluster == copy.cluster);
        admitted.min_by_key(|(at, copy)| (*at, position(copy))).map(|(_, copy)| copy)
    }

    /// When it admitted. A cluster whose API server refuses the job has nothing to run.
    fn admitted_at(&self, copy: &RemoteCopy) -> Option<Time> {
        let takes_it = copy.connection == WorkerConnection::Connected && copy.refused.is_none();
        let clone = self.usable_clone(copy).filter(|_| takes_it)?;
        let stands = !clone.deleting && !clone.evicted && clone.refused.is_none();
        clone.admitted_at.filter(|_| stands)
    }

    fn usable_clone<'c>(&self, copy: &'c RemoteCopy) -> Option<&'c RemoteWorkload> {
        copy.clone.as_ref().filter(|clone| clone.epoch == self.hub.epoch && clone.same_spec)
    }

    /// Records the winner when the others have nothing of this epoch any more.
    fn elect(&self, winner: &RemoteCopy) -> Vec<DispatchStep> {
        let others = || self.copies.iter().filter(|copy| copy.cluster != winner.cluster);
        if others().any(|copy| self.may_compete(copy)) {
            let chosen = self.chosen();
            return removals(others().filter(|copy| chosen.contains(&copy.cluster)));
        }
        vec![DispatchStep::SetCheckReady(winner.cluster)]
    }

    /// Whether a cluster that is not the chosen one has something of this epoch, and can be told to remove it.
    fn may_compete(&self, copy: &RemoteCopy) -> bool {
        copy.connection == WorkerConnection::Connected
            && (!copy.creates_answered || self.is_current(copy))
            || self.has_job(copy) && !self.is_lost(copy)
    }

    fn is_lost(&self, copy: &RemoteCopy) -> bool {
        matches!(copy.connection, WorkerConnection::Disconnected { since } if self.now >= self.lost_at(since))
    }

    fn prospect(&self, copy: &RemoteCopy, alone: bool) -> NominationProgress {
        match copy.connection {
            WorkerConnection::NotSynced => NominationProgress::Ongoing(Vec::new(), None),
            WorkerConnection::Disconnected { since }
                if self.hub.create_sent && !self.is_lost(copy) =>
            {
                NominationProgress::Ongoing(Vec::new(), Some(self.lost_at(since)))
            }
            WorkerConnection::Disconnected { .. } => NominationProgress::Rejected,
            WorkerConnection::Connected if self.is_hopeless(copy, alone) => {
                NominationProgress::Rejected
            }
            WorkerConnection::Connected => {
                let due = alone.then(|| self.admit_by());
                NominationProgress::Ongoing(self.create(copy, alone), due)
            }
        }
    }

    fn admit_by(&self) -> Time {
        Time(self.hub.nominated_at.0.saturating_add(self.settings.admission_timeout))
    }

    /// Whether a live cluster says, or shows, that it will not take the Workload.
    fn is_hopeless(&self, copy: &RemoteCopy, alone: bool) -> bool {
        let against = self.usable_clone(copy).and_then(|clone| said(clone, alone)).is_some();
        copy.refused.is_some() || against || alone && self.now >= self.admit_by()
    }

    /// What is missing on a nominated cluster, after what is in the way is removed.
    fn create(&self, copy: &RemoteCopy, alone: bool) -> Vec<DispatchStep> {
        let stale_clone = copy.clone.is_some() && self.usable_clone(copy).is_none();
        if stale_clone || self.has_stale_job(copy) {
            return removal(copy).into_iter().collect();
        }
        let leaving = copy.clone.as_ref().is_some_and(|clone| clone.deleting)
            || copy.job.is_some_and(|job| job.deleting);
        if leaving || !copy.creates_answered || self.started_elsewhere(copy.cluster) {
            return Vec::new();
        }
        let clone = copy.clone.is_none().then_some(DispatchStep::CreateClone(copy.cluster));
        let job = (alone && copy.job.is_none()).then_some(DispatchStep::CreateJob(copy.cluster));
        clone.into_iter().chain(job).collect()
    }

    /// A job of this epoch is on a cluster that is not nominated any more.
    fn started_elsewhere(&self, here: ClusterId) -> bool {
        let mut others = self.copies.iter().filter(|copy| copy.cluster != here);
        others.any(|copy| self.has_job(copy) && !self.is_lost(copy))
    }

    /// Stops what is there, and gives the nomination back.
    fn unplace(&self, copies: &[&RemoteCopy], alone: bool) -> Vec<DispatchStep> {
        let jobs = copies.iter().filter(|copy| copy.connection == WorkerConnection::Connected);
        let stop = jobs.filter(|copy| copy.job.is_some_and(|job| !job.deleting));
        let stop: Vec<DispatchStep> =
            stop.map(|copy| DispatchStep::DeleteJob(copy.cluster)).collect();
        match self.all_quiet(|copy| copy.job.is_none()) {
            RemoteActivity::Possible => stop,
            RemoteActivity::PossibleUntil(due) => with_deadline(stop, [due]),
            RemoteActivity::None if !self.hub.epoch_raised => vec![DispatchStep::RaiseEpoch],
            RemoteActivity::None => {
                copies.first().map(|copy| self.give_up(copy, alone)).into_iter().collect()
            }
        }
    }

    /// The clone still says why, at the epoch before.
    fn give_up(&self, copy: &RemoteCopy, alone: bool) -> DispatchStep {
        let said = || copy.clone.as_ref().and_then(|clone| said(clone, alone));
        let why = copy.refused.clone().or_else(said).unwrap_or_else(|| match copy.connection {
            WorkerConnection::Disconnected { .. } => LOST.into(),
            WorkerConnection::Connected | WorkerConnection::NotSynced => LATE.into(),
        });
        DispatchStep::CancelNomination { cluster: copy.cluster, why }
    }
}

const LOST: &str = "the worker was lost before it admitted the workload";
const LATE: &str = "not admitted by the worker in time";
const FINISHED: &str = "finished on the worker before it was admitted there";
const EVICTED: &str = "evicted on the worker before it was recorded on the manager";

/// What a clone says against its cluster. In a race an evicted clone queues again.
fn said(clone: &RemoteWorkload, alone: bool) -> Option<Box<str>> {
    let finished = clone.finished.is_some().then_some(FINISHED);
    let evicted = (alone && clone.evicted).then_some(EVICTED);
    clone.refused.clone().or_else(|| finished.or(evicted).map(Into::into))
}
