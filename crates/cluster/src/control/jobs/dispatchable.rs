//! Whether the job of a Workload can be dispatched to workers (docs/reference/multikueue.md §2.3).

use ::jobs::{GenericJob, Gvk, JobObject, Kinds};
use crds::{names::MULTI_KUEUE_CONTROLLER, v1beta2::Workload};

/// Why it cannot, in upstream's words. `job` is `None` if it was not observed.
pub(super) fn refusal(
    job: Option<&JobObject>,
    workload: &Workload,
    kinds: &Kinds,
) -> Option<String> {
    let Some(job) = job else {
        let mut owners = workload.metadata.owner_references.iter().flatten();
        return match owners.next() {
            // The watch may report the job later than its Workload.
            Some(owner) if kinds.find(&owner.api_version, &owner.kind).is_some() => None,
            Some(owner) => Some(no_adapter(&Gvk::of(&owner.api_version, &owner.kind))),
            None => Some("No multikueue adapter found".to_owned()),
        };
    };
    // A gated pod has no such field and needs none: it stays gated here (docs/reference/multikueue.md §2.7).
    if job.stays_gated_when_dispatched() {
        return None;
    }
    // Without such a field the operator of the hub would run the job as well.
    let Some(managed_by) = job.kind().managed_by() else {
        return Some(no_adapter(&job.kind().gvk()));
    };
    let (field, manager) = (managed_by.at.field_path(), job.managed_by().unwrap_or_default());
    (manager != MULTI_KUEUE_CONTROLLER).then(|| {
        format!(
            "The owner is not managed by Kueue: Expecting {field} to be \"{MULTI_KUEUE_CONTROLLER}\" not \"{manager}\""
        )
    })
}

fn no_adapter(gvk: &Gvk) -> String {
    format!("No multikueue adapter found for owner kind \"{gvk}\"")
}
