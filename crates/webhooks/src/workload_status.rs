//! Validation of the status of Workloads.

use crds::{
    meta,
    names::conditions::QUOTA_RESERVED,
    v1beta2::{
        Admission, AdmissionCheckState, PodSetAssignment, PodSetUpdate, ReclaimablePod, Workload,
    },
    validation::{Errors, FieldError, labels},
};

use super::{resource_flavor::check_tolerations, workload_update::has_shrunk};

/// Whether quota is reserved for a Workload.
pub(super) fn is_reserved(workload: &Workload) -> bool {
    meta::is_true(&workload.status.conditions, QUOTA_RESERVED)
}

/// Errors of the status.
pub(super) fn check(workload: &Workload, old: Option<&Workload>) -> Errors {
    let status = &workload.status;
    let pod_sets: Vec<&str> =
        workload.spec.pod_sets.iter().map(|pod_set| pod_set.name.as_str()).collect();
    let mut errors = check_conditions(workload);
    errors.extend(check_reserved(workload, old));
    for (at, check) in status.admission_checks.iter().enumerate() {
        errors.extend(check_updates(&format!("status.admissionChecks[{at}]"), check, &pod_sets));
    }
    if let Some(admission) = &status.admission {
        errors.extend(check_admission(admission, &pod_sets));
    }
    // Reclaimable pods of a Workload without quota count for nothing.
    if is_reserved(workload) {
        errors.extend(check_reclaimable(workload, old, &pod_sets));
    }
    errors
}

fn check_conditions(workload: &Workload) -> Errors {
    let conditions = workload.status.conditions.iter().enumerate();
    conditions
        .flat_map(|(at, condition)| {
            labels::check_key(&format!("status.conditions[{at}].type"), &condition.r#type)
        })
        .collect()
}

/// A Workload with quota needs an admission. One that was stored without it can still be changed.
fn check_reserved(workload: &Workload, old: Option<&Workload>) -> Option<FieldError> {
    let unrecorded =
        |workload: &Workload| is_reserved(workload) && workload.status.admission.is_none();
    let detail = "must be set while the QuotaReserved condition is true";
    (unrecorded(workload) && !old.is_some_and(unrecorded))
        .then(|| FieldError::required("status.admission", detail))
}

fn check_updates(field: &str, check: &AdmissionCheckState, pod_sets: &[&str]) -> Errors {
    let updates = check.pod_set_updates.iter().enumerate();
    updates
        .flat_map(|(at, update)| {
            check_update(&format!("{field}.podSetUpdates[{at}]"), update, pod_sets)
        })
        .collect()
}

fn check_update(field: &str, update: &PodSetUpdate, pod_sets: &[&str]) -> Errors {
    let mut errors = Errors::new();
    if !pod_sets.contains(&update.name.as_str()) {
        let supported = pod_sets.iter().copied();
        errors.push(FieldError::not_supported(format!("{field}.name"), &update.name, supported));
    }
    errors.extend(labels::check_labels(&format!("{field}.labels"), &update.labels));
    errors.extend(labels::check_annotations(&format!("{field}.annotations"), &update.annotations));
    errors.extend(labels::check_labels(&format!("{field}.nodeSelector"), &update.node_selector));
    errors.extend(check_tolerations(&format!("{field}.tolerations"), &update.tolerations));
    errors
}

fn check_admission(admission: &Admission, pod_sets: &[&str]) -> Errors {
    let mut errors = Errors::new();
    for (at, assignment) in admission.pod_set_assignments.iter().enumerate() {
        let field = format!("status.admission.podSetAssignments[{at}]");
        if !pod_sets.contains(&assignment.name.as_str()) {
            errors.push(FieldError::not_found(format!("{field}.name"), &assignment.name));
        }
        errors.extend(check_usage(&field, assignment));
    }
    errors
}

/// The usage of a pod set must be divisible by its count.
fn check_usage(field: &str, assignment: &PodSetAssignment) -> Errors {
    let count = i64::from(assignment.count.unwrap_or_default());
    // A pod set without pods has no usage to be divided.
    if count == 0 {
        return vec![];
    }
    let usage = assignment.resource_usage.iter().filter(|(name, amount)| {
        // The units of quota (docs/reference/kueue.md §2.7).
        let amount = if *name == "cpu" { amount.milli() } else { amount.units() };
        amount % count != 0
    });
    usage
        .map(|(name, amount)| {
            let detail = format!("is not a multiple of {count}");
            FieldError::invalid(format!("{field}.resourceUsage[{name}]"), amount, detail)
        })
        .collect()
}

/// Whether these reclaimable pods are those of before an elastic pod set was scaled down. The scale-down changes the spec
/// alone.
fn is_kept_after_scale_down(
    workload: &Workload,
    old: Option<&Workload>,
    pods: &ReclaimablePod,
) -> bool {
    let kept = old.is_some_and(|old| old.status.reclaimable_pods.contains(pods));
    kept && has_shrunk(workload, &pods.name)
}

fn check_reclaimable(workload: &Workload, old: Option<&Workload>, pod_sets: &[&str]) -> Errors {
    let mut errors = Errors::new();
    for pods in &workload.status.reclaimable_pods {
        let field = format!("status.reclaimablePods[{}]", pods.name);
        match workload.spec.pod_sets.iter().find(|pod_set| pod_set.name == pods.name) {
            None => {
                let supported = pod_sets.iter().copied();
                errors.push(FieldError::not_supported(
                    format!("{field}.name"),
                    &pods.name,
                    supported,
                ));
            }
            Some(pod_set)
                if pods.count > pod_set.count.unwrap_or_default()
                    && !is_kept_after_scale_down(workload, old, pods) =>
            {
                let detail =
                    format!("should be less or equal to {}", pod_set.count.unwrap_or_default());
                errors.push(FieldError::invalid(format!("{field}.count"), pods.count, detail));
            }
            Some(_) => {}
        }
    }
    errors
}
