//! Removal of copies: first the jobs, then the clone.
//!
//! The clone stays while a job may exist, so that the worker knows the job's owner; also that of an earlier slice of an elastic
//! job, until the job names the later one. An object that is being deleted
//! is waited for. Copies on a disconnected cluster are removed later: absence on the hub is the durable intent
//! (docs/reference/dispatch.md §9). A disputed copy is not removed at all (§6).

use super::{DispatchStep, RemoteConnection, RemoteCopy, dispatch_view::DispatchView};

/// The next step of removing one copy; `None` if nothing can be done now.
pub(super) fn removal(view: &DispatchView<'_>, copy: &RemoteCopy) -> Option<DispatchStep> {
    if copy.connection != RemoteConnection::Connected || view.is_disputed(copy) {
        return None;
    }
    // Without its Workload the job would be stopped.
    if copy.jobs.iter().any(|job| job.handed_over) {
        return None;
    }
    if copy.has_own_job() {
        return copy.has_live_job().then_some(DispatchStep::DeleteJobs(copy.cluster));
    }
    // A create of a job without an answer may still be applied; the clone has to outlive it.
    let clone = copy.clone.as_ref().filter(|clone| copy.creates_answered && !clone.deleting);
    clone.map(|_| DispatchStep::DeleteClone(copy.cluster))
}

/// The next steps of removing several copies.
pub(super) fn removals<'c>(
    view: &DispatchView<'_>,
    copies: impl Iterator<Item = &'c RemoteCopy>,
) -> Vec<DispatchStep> {
    copies.filter_map(|copy| removal(view, copy)).collect()
}
