//! Requeue backoff of a Workload: when an evicted Workload may be queued again.
//!
//! Source: docs/reference/kueue.md §2.4.

use crds::names::conditions;
use crds::v1beta2::Workload;
use engine::Time;

use crate::status::find;
use crate::time::time;

/// End of the requeue backoff.
pub(super) fn requeue_at(workload: &Workload) -> Option<Time> {
    let state = workload.status.requeue_state.as_ref()?;
    state.requeue_at.as_ref().map(time)
}

/// A running backoff, a stopped queue that awaits its restart, or a check in Retry or Rejected.
pub(super) fn awaits_requeue(workload: &Workload, now: Time) -> bool {
    let requeued = find(&workload.status.conditions, conditions::REQUEUED);
    let mut checks = workload.status.admission_checks.iter();
    requeue_at(workload).is_some_and(|at| at > now)
        || requeued.is_some_and(|one| one.status == "False")
        || checks.any(|one| matches!(one.state.as_str(), "Retry" | "Rejected"))
}
