//! Adoption of a result: a copy that would be removed has succeeded, and the work need not be done again.
//!
//! That is a copy of an earlier dispatch on a cluster that was lost and comes back, or one of a Workload in its withdrawal. The
//! hub's jobs get the status of the copies, the Workload finishes with them, and then every copy is removed. What has started under
//! the present epoch decides in its stead: then the work is done a second time already. Nothing is adopted of a copy that is
//! disputed, or that was made for other pods than the job asks for now. Source: docs/reference/dispatch.md §6.

use crate::CopyHistory;

use super::{DispatchStep, RemoteConnection, RemoteCopy, dispatch_view::DispatchView};

/// The step that adopts the result of a copy; `None` if there is none to adopt.
pub(super) fn adopt(view: &DispatchView<'_>) -> Option<DispatchStep> {
    let hub = view.hub;
    let mut copies = view.copies.iter();
    let adopted = copies.find(|copy| is_left_over(view, copy) && has_result(view, copy))?;
    let others = || view.copies.iter().filter(|copy| copy.cluster != adopted.cluster);
    let is_idle = hub.job.exists && !others().any(|copy| may_have_started(view, copy));
    is_idle.then_some(DispatchStep::AdoptResult(adopted.cluster))
}

/// Whether a copy is not, or no longer, the one that the hub follows.
fn is_left_over(view: &DispatchView<'_>, copy: &RemoteCopy) -> bool {
    let withdrawn = !view.hub.quota_reserved || view.hub.evicted;
    withdrawn || copy.newest_epoch() < Some(view.hub.epoch)
}

/// Whether all jobs of a copy have succeeded, and the hub's can show it. A copy of a deleted Workload of the name has done
/// the work of that one, so clone and jobs have to name the uid of this one.
fn has_result(view: &DispatchView<'_>, copy: &RemoteCopy) -> bool {
    let is_own = |history, same_uid| same_uid && history == CopyHistory::Known;
    let complete = !copy.missing_job && !copy.jobs.is_empty();
    let mut jobs = copy.jobs.iter();
    copy.connection == RemoteConnection::Connected
        && !view.is_disputed(copy)
        && copy
            .clone
            .as_ref()
            .is_some_and(|clone| clone.same_pods && is_own(clone.history, clone.same_uid))
        && complete
        && jobs.all(|job| {
            let shows = job.succeeded && !job.end_refused;
            shows && !job.shared && is_own(job.history, job.same_uid)
        })
}

/// Whether a job of the present epoch runs, has run, or may run unseen.
fn may_have_started(view: &DispatchView<'_>, copy: &RemoteCopy) -> bool {
    if copy.connection != RemoteConnection::Connected {
        return (view.was_chosen(copy) || view.has_job(copy)) && !view.is_lost(copy);
    }
    let mut current = copy.jobs.iter().filter(|job| view.carries(job.epoch, job.history));
    current.any(|job| !job.suspended || job.active || job.finished)
}
