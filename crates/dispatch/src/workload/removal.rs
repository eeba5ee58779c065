//! Removal of copies: first the job, then the clone.
//!
//! The clone stays while a job may exist, so that the worker knows the job's owner. An object that is being deleted
//! is waited for. Copies on a disconnected cluster are removed later: absence on the hub is the durable intent
//! (docs/reference/dispatch.md §9).

use super::{DispatchStep, RemoteConnection, RemoteCopy};

/// The next step of removing one copy; `None` if nothing can be done now.
pub(super) fn removal(copy: &RemoteCopy) -> Option<DispatchStep> {
    if copy.connection != RemoteConnection::Connected {
        return None;
    }
    match (&copy.job, &copy.clone) {
        (Some(job), _) => (!job.deleting).then_some(DispatchStep::DeleteJob(copy.cluster)),
        // A create of the job without an answer may still be applied; the clone has to outlive it.
        (None, Some(clone)) => (copy.creates_answered && !clone.deleting)
            .then_some(DispatchStep::DeleteClone(copy.cluster)),
        (None, None) => None,
    }
}

/// The next steps of removing several copies.
pub(super) fn removals<'a>(copies: impl Iterator<Item = &'a RemoteCopy>) -> Vec<DispatchStep> {
    copies.filter_map(removal).collect()
}
