//! What concurrent admission writes: a parent that is admitted as its variant, and preemption gates that open.
//! Source: docs/reference/kueue.md §4.13.

use crds::names::{conditions, reasons};
use crds::v1beta2::{Admission, AdmissionCheckState, PreemptionGateState, WorkloadStatus};

use super::condition::NewCondition;
use super::quota_reserved::{QuotaReservation, quota_reserved};
use super::status_stamp::StatusStamp;
use super::{admitted, condition};
use crate::time::to_seconds;

/// What a parent shows of an admitted variant.
#[derive(Debug, Clone, Copy)]
pub struct ShownVariant<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its admission.
    pub admission: &'a Admission,
    /// The states of its checks, with what they add to the pods.
    pub checks: &'a [AdmissionCheckState],
}

/// Sets QuotaReserved and Admitted of a parent, with the admission and the checks of its variant.
#[must_use]
pub fn admitted_as_variant(
    status: WorkloadStatus,
    shown: ShownVariant<'_>,
    at: StatusStamp,
) -> WorkloadStatus {
    let names: Vec<String> = shown.checks.iter().map(|check| check.name.clone()).collect();
    let admission = shown.admission.clone();
    let reservation = QuotaReservation { admission, checks: &names, nominated: &[] };
    let mut status = quota_reserved(status, reservation, at);
    status.admission_checks = shown.checks.to_vec();
    admitted::sync(&mut status, at);
    let all = &mut status.conditions;
    if crds::meta::is_true(all, conditions::ADMITTED) {
        let message = format!("The variant {} is admitted", shown.name);
        condition::set(
            all,
            NewCondition {
                kind: conditions::ADMITTED,
                status: true,
                reason: reasons::ADMITTED,
                message: &message,
            },
            at,
        );
    }
    status
}

/// Opens a preemption gate.
#[must_use]
pub fn with_open_gate(mut status: WorkloadStatus, gate: &str, at: StatusStamp) -> WorkloadStatus {
    if status.open_gate(gate).is_some() {
        return status;
    }
    let open = PreemptionGateState {
        name: gate.to_owned(),
        position: PreemptionGateState::OPEN.to_owned(),
        last_transition_time: Some(to_seconds(at.now)),
    };
    status.preemption_gates.retain(|one| one.name != gate);
    status.preemption_gates.push(open);
    status
}
