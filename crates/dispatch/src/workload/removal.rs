//! Removing copies: the job first, the clone when the job is gone.
//!
//! The clone stays as long as a job may be there, so that the worker knows what the job is. What is being deleted
//! is waited for. A cluster that is not live is left for later: absence on the hub is the durable intent (docs/reference/dispatch.md §9).

use super::{DispatchStep, RemoteCopy, WorkerConnection};

/// The next step of removing one copy. None if there is nothing to do, or nothing to do now.
pub(super) fn removal(copy: &RemoteCopy) -> Option<DispatchStep> {
    if copy.connection != WorkerConnection::Connected {
        return None;
    }
    match (&copy.job, &copy.clone) {
        (Some(job), _) => (!job.deleting).then_some(DispatchStep::DeleteJob(copy.cluster)),
        (None, Some(clone)) => (copy.creates_answered && !clone.deleting)
            .then_some(DispatchStep::DeleteClone(copy.cluster)),
        (None, None) => None,
    }
}

/// The next steps of removing several copies.
pub(super) fn removals<'a>(copies: impl Iterator<Item = &'a RemoteCopy>) -> Vec<DispatchStep> {
    copies.filter_map(removal).collect()
}
