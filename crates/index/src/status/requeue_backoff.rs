//! Requeue and requeue backoff of evicted Workloads (`requeueState`). Source: docs/reference/kueue.md §2.4.

use crds::meta::Condition;
use crds::names::{conditions, reasons};
use crds::v1beta2::{Workload, WorkloadStatus};
use jiff::Timestamp;

use super::condition::{self, NewCondition};
use super::status_stamp::StatusStamp;
use crate::time::to_seconds;

/// When a Workload entered its queue: its last requeue, else its creation.
#[must_use]
pub fn queued_at(workload: &Workload) -> Option<Timestamp> {
    let requeued = condition::find(&workload.status.conditions, conditions::REQUEUED);
    let created = workload.metadata.creation_timestamp.as_ref().map(|time| time.0);
    requeued.and_then(Condition::transitioned_at).or(created)
}

/// Requeues the Workload. The reason is BackoffFinished, ClusterQueueRestarted, LocalQueueRestarted or Reactivated.
#[must_use]
pub fn requeued(mut status: WorkloadStatus, reason: &str, at: StatusStamp) -> WorkloadStatus {
    let message = match reason {
        reasons::BACKOFF_FINISHED => "The workload backoff was finished",
        reasons::CLUSTER_QUEUE_RESTARTED => "The ClusterQueue was restarted after being stopped",
        reasons::LOCAL_QUEUE_RESTARTED => "The LocalQueue was restarted after being stopped",
        reasons::REACTIVATED => "The workload was reactivated",
        _ => "",
    };
    condition::set(
        &mut status.conditions,
        NewCondition { kind: conditions::REQUEUED, status: true, reason, message },
        at,
    );
    status
}

/// Clears `requeueAt` once it is reached.
#[must_use]
pub fn backoff_ended(mut status: WorkloadStatus, now: Timestamp) -> WorkloadStatus {
    if let Some(state) = &mut status.requeue_state {
        // The count stays: it limits the number of requeues (§2.4).
        state.requeue_at = state.requeue_at.take().filter(|at| at.0 > now);
    }
    status
}

/// Sets `requeueAt` to `until`, or keeps a later time. With `counted`, raises the requeue count, which has a limit.
#[must_use]
pub fn back_off(mut status: WorkloadStatus, until: Timestamp, counted: bool) -> WorkloadStatus {
    let state = status.requeue_state.get_or_insert_default();
    let until = to_seconds(until);
    // Of several backoffs, e.g. of two checks in Retry, the longest counts (§2.3).
    if state.requeue_at.as_ref().is_none_or(|old| *old < until) {
        state.requeue_at = Some(until);
    }
    if counted {
        state.count = Some(state.count.unwrap_or(0).saturating_add(1));
    }
    status
}
