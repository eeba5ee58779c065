//! Whether the job of a Workload can be dispatched to workers (docs/reference/multikueue.md §2.3).

use ::jobs::{GenericJob, Gvk, JobObject, Kind, Kinds, kind::ManagedBy};
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
    let (field, manager) =
        (field_name(job.kind(), managed_by), job.managed_by().unwrap_or_default());
    (manager != MULTI_KUEUE_CONTROLLER).then(|| {
        format!(
            "The owner is not managed by Kueue: Expecting {field} to be \"{MULTI_KUEUE_CONTROLLER}\" not \"{manager}\""
        )
    })
}

/// The controller of the kinds for which upstream has one adapter together.
const TRAINING_OPERATOR: &str = "kubeflow.org/training-operator";

/// The field of the manager as upstream's messages name it: that of external frameworks with a leading dot, and `spec.managedBy`
/// for every kind of the training operator, although their field is in `runPolicy`.
fn field_name(kind: &Kind, managed_by: &ManagedBy) -> String {
    let path = managed_by.at.field_path();
    match kind.is_mirrored() {
        true => format!(".{path}"),
        false if managed_by.controller == TRAINING_OPERATOR => "spec.managedBy".to_owned(),
        false => path,
    }
}

fn no_adapter(gvk: &Gvk) -> String {
    format!("No multikueue adapter found for owner kind \"{gvk}\"")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_field_is_named_as_upstream_names_it() {
        let kinds = Kinds::built_in();
        for (framework, field) in [
            ("kubeflow.org/tfjob", "spec.managedBy"),
            ("kubeflow.org/pytorchjob", "spec.managedBy"),
            ("kubeflow.org/mpijob", "spec.runPolicy.managedBy"),
            ("jobset.x-k8s.io/jobset", "spec.managedBy"),
        ] {
            let kind = kinds.of_framework(framework).expect("a kind");
            let object = json!({ "metadata": { "name": "a", "namespace": "ns" }, "spec": {} });
            let job = kind.decode(object).expect("it decodes");
            let said = refusal(Some(&job), &Workload::default(), kinds).expect("it is refused");
            let expected = format!("Expecting {field} to be \"{MULTI_KUEUE_CONTROLLER}\" not \"\"");
            assert!(said.ends_with(&expected), "{framework}: {said}");
        }
    }
}
