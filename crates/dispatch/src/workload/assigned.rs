//! From the record to the end: the recorded cluster runs the Workload, and nobody else does.
//!
//! Only the recorded epoch is adopted; whatever else is found is removed, and so is a clone that does not ask for what the
//! hub's Workload asks for. A recorded cluster without a clone is a reason to start over. Source: docs/reference/dispatch.md §5-6, docs/reference/multikueue.md §2.3.

use super::{
    DispatchDecision, DispatchStep, RemoteCopy, RemoteWorkload, RetryReason, WorkerConnection,
    removal::{removal, removals},
    with_deadline,
};

/// Reason of a clone that ended because its job is not what it says. One of `crds::names::reasons`, on the wire.
const OUT_OF_SYNC: &str = "OutOfSync";

/// Reasons of a clone that ended because its job did.
const OF_JOBS: [&str; 2] = ["Succeeded", "Failed"];

impl DispatchDecision<'_> {
    /// The steps of a Workload that has, or had, a cluster.
    pub(super) fn recorded(&self) -> Vec<DispatchStep> {
        let Some(cluster) = self.hub.recorded_cluster else {
            return vec![DispatchStep::SetCheckRetry(RetryReason::NoClusterRecorded)];
        };
        let mut steps = removals(self.copies.iter().filter(|copy| copy.cluster != cluster));
        steps.extend(self.copy(cluster).map(|copy| self.follow(copy)).unwrap_or_default());
        steps
    }

    fn follow(&self, copy: &RemoteCopy) -> Vec<DispatchStep> {
        match copy.connection {
            WorkerConnection::NotSynced => Vec::new(),
            WorkerConnection::Disconnected { since } if self.now < self.lost_at(since) => {
                with_deadline(Vec::new(), [self.lost_at(since)])
            }
            WorkerConnection::Disconnected { .. } => {
                vec![DispatchStep::SetCheckRetry(RetryReason::RemoteLost)]
            }
            WorkerConnection::Connected => self.follow_live(copy).into_iter().collect(),
        }
    }

    fn follow_live(&self, copy: &RemoteCopy) -> Option<DispatchStep> {
        let Some(clone) = &copy.clone else {
            return Some(DispatchStep::SetCheckRetry(RetryReason::RemoteMissing));
        };
        if self.has_stale_job(copy) || clone.epoch != self.hub.epoch {
            return removal(copy);
        }
        if clone.deleting {
            return None;
        }
        match &clone.finished {
            Some((reason, _)) if **reason == *OUT_OF_SYNC => {
                Some(DispatchStep::SetCheckRetry(RetryReason::OutOfSync(copy.cluster)))
            }
            Some((reason, message)) => self.finish(copy, reason, message),
            None if !clone.same_spec => removal(copy),
            None => self.run(copy, clone),
        }
    }

    /// The clone is over: the final status is shown on the hub before the Workload is finished there. A clone that ended
    /// for another reason than its job's end has a job that never ends.
    fn finish(&self, copy: &RemoteCopy, reason: &str, message: &str) -> Option<DispatchStep> {
        let ends = OF_JOBS.contains(&reason);
        let shown = copy.job.is_none_or(|job| job.status_synced && (job.finished || !ends));
        if shown || !self.hub.job.exists {
            return Some(DispatchStep::Finish { reason: reason.into(), message: message.into() });
        }
        self.sync(copy)
    }

    fn run(&self, copy: &RemoteCopy, clone: &RemoteWorkload) -> Option<DispatchStep> {
        if clone.evicted || clone.refused.is_some() {
            return Some(DispatchStep::SetCheckRetry(RetryReason::EvictedOnWorker(copy.cluster)));
        }
        match copy.job {
            Some(job) if job.deleting => None,
            Some(_) => self.sync(copy),
            None if self.hub.job.started => {
                Some(DispatchStep::SetCheckRetry(RetryReason::RemoteMissing))
            }
            None if copy.refused.is_some() => {
                Some(DispatchStep::SetCheckRetry(RetryReason::RefusedByWorker(copy.cluster)))
            }
            None => copy.creates_answered.then_some(DispatchStep::CreateJob(copy.cluster)),
        }
    }

    /// Copies a status that the hub does not show yet. A suspended Job takes none: the core resumes it first.
    fn sync(&self, copy: &RemoteCopy) -> Option<DispatchStep> {
        let news = copy.job.is_some_and(|job| !job.status_synced);
        let takes_it = self.hub.job.exists && !self.hub.job.suspended;
        (news && takes_it).then_some(DispatchStep::SyncStatus(copy.cluster))
    }
}
