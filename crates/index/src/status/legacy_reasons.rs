//! Reasons of conditions before the gate UnadmittedWorkloadsObservability. Source: docs/reference/kueue.md §2.1.

use crds::names::{conditions, reasons};
use crds::v1beta2::WorkloadStatus;

/// The status with the reasons of before the gate: three for a pending Workload, one for open checks.
#[must_use]
pub fn with_legacy_reasons(mut status: WorkloadStatus) -> WorkloadStatus {
    for one in status.conditions.iter_mut().filter(|one| one.status == "False") {
        let legacy = match (one.r#type.as_str(), one.reason.as_str()) {
            (conditions::QUOTA_RESERVED, reason) => legacy_reason(reason),
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

fn legacy_reason(reason: &str) -> Option<&'static str> {
    match reason {
        reasons::NO_MATCHING_FLAVOR
        | reasons::EXCEEDS_MAX_QUOTA
        | reasons::WAITING_FOR_QUOTA
        | reasons::TOPOLOGY_PLACEMENT_FAILED
        | reasons::WAITING_FOR_PREEMPTED_WORKLOADS
        | reasons::PENDING_EVALUATION => Some(reasons::PENDING),
        reasons::MISCONFIGURED
        | reasons::SUSPENDED
        | reasons::ADMISSION_GATED
        | reasons::DEACTIVATED => Some(reasons::INADMISSIBLE),
        reasons::WAITING_FOR_PODS_READY => Some(reasons::WAITING),
        _ => None,
    }
}
