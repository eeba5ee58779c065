//! What a Workload follows of its job beside the pod sets: admission gates, priority class, and the owner of a prebuilt one
//! (docs/reference/kueue.md §7.4).

use crds::{
    names::{annotations::ADMISSION_GATED_BY, labels::PRIORITY_CLASS},
    v1beta2::Workload,
};

use super::{ReconcileContext, ReconcileStep, WorkloadStep};
use crate::{GenericJob, JobGates, equivalence::has_controller};

/// The steps for an unfinished Workload that matches its job.
pub(super) fn steps<J: GenericJob>(
    job: &J,
    workload: &Workload,
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if context.prebuilt {
        // A prebuilt Workload has gates and priority of its own.
        return take_ownership(workload).into_iter().collect();
    }
    follow(job, workload, context.gates)
}

/// Makes the job the controller of a prebuilt Workload that has none.
pub(super) fn take_ownership<J>(workload: &Workload) -> Option<ReconcileStep<J>> {
    let free = !has_controller(workload);
    free.then(|| WorkloadStep::TakeOwnership.of(workload))
}

/// The same for a Workload that is not prebuilt.
pub(crate) fn follow<J: GenericJob>(
    job: &J,
    workload: &Workload,
    gates: JobGates,
) -> Vec<ReconcileStep<J>> {
    let update = update_gates(job, workload, gates);
    update.into_iter().chain(update_priority(job, workload)).collect()
}

/// The admission gates alone.
pub(crate) fn update_gates<J: GenericJob>(
    job: &J,
    workload: &Workload,
    gates: JobGates,
) -> Option<ReconcileStep<J>> {
    let known = workload.metadata.annotations.as_ref();
    let known = known.and_then(|all| all.get(ADMISSION_GATED_BY)).map(String::as_str);
    let wanted = job.annotation(ADMISSION_GATED_BY);
    // An empty list is no gate.
    let changed = known.unwrap_or_default() != wanted.unwrap_or_default();
    (changed && gates.admission_gated_by).then(|| {
        let wanted = wanted.filter(|gates| !gates.is_empty()).map(str::to_owned);
        WorkloadStep::UpdateAdmissionGates(wanted).of(workload)
    })
}

/// A class that is changed on the job reaches its Workload, and so does its removal: the priority is that of the pods then. One that comes
/// from a PriorityClass was read at the creation, and with quota the API refuses the first class and the removal of one.
fn update_priority<J: GenericJob>(job: &J, workload: &Workload) -> Option<ReconcileStep<J>> {
    let wanted = job.label(PRIORITY_CLASS).filter(|class| !class.is_empty());
    let is_free = !workload.has_quota_reservation();
    let differs = match (&workload.spec.priority_class_ref, wanted) {
        (Some(class), _) if class.kind != "WorkloadPriorityClass" => false,
        (Some(class), Some(wanted)) => class.name != wanted,
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => is_free,
    };
    differs.then(|| WorkloadStep::UpdatePriority.of(workload))
}
