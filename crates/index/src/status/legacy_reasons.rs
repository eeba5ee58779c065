//! Reasons of conditions before the gate UnadmittedWorkloadsObservability. Source: docs/reference/kueue.md §2.1.

use crds::names::{conditions, reasons};
use crds::v1beta2::WorkloadStatus;

/// The status with the reasons of before the gate: four for a pending Workload, one for open checks. With `by_cycle`, the reason to be
/// pending is that of a scheduling cycle.
#[must_use]
pub fn with_legacy_reasons(mut status: WorkloadStatus, by_cycle: bool) -> WorkloadStatus {
    for one in status.conditions.iter_mut().filter(|one| one.status == "False") {
        let legacy = match (one.r#type.as_str(), one.reason.as_str()) {
            (conditions::QUOTA_RESERVED, reason) => legacy_reason(reason, by_cycle),
            (conditions::ADMITTED, reasons::UNSATISFIED_ADMISSION_CHECKS) => {
                Some(reasons::UNSATISFIED_CHECKS)
            }
            _ => None,
        };
        if let Some(legacy) = legacy {
            legacy.clone_into(&mut one.reason);
        }
    }
    status
}

fn legacy_reason(reason: &str, by_cycle: bool) -> Option<&'static str> {
    match reason {
        reasons::NO_MATCHING_FLAVOR
        | reasons::EXCEEDS_MAX_QUOTA
        | reasons::WAITING_FOR_QUOTA
        | reasons::TOPOLOGY_PLACEMENT_FAILED
        | reasons::WAITING_FOR_PREEMPTED_WORKLOADS
        | reasons::PENDING_EVALUATION => Some(reasons::PENDING),
        // A cycle refuses a namespace, a request or a preemption; only queues made a Workload inadmissible.
        reasons::MISCONFIGURED | reasons::ADMISSION_GATED if by_cycle => Some(reasons::PENDING),
        reasons::MISCONFIGURED | reasons::SUSPENDED | reasons::DEACTIVATED => {
            Some(reasons::INADMISSIBLE)
        }
        reasons::WAITING_FOR_PODS_READY => Some(reasons::WAITING),
        _ => None,
    }
}
