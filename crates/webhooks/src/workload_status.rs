//! Validation of the status of Workloads.

use crds::{
    v1beta2::{
        Admission, AdmissionCheckState, PodSetAssignment, PodSetUpdate, ReclaimablePod, Workload,
    },
    validation::{Errors, FieldError, labels},
};
use jobs::pod_counts::count;

use super::{
    WebhookGates, resource_flavor::check_tolerations, workload::is_elastic,
    workload_update::has_shrunk,
};

/// Errors of the status.
pub(super) fn check(workload: &Workload, old: Option<&Workload>, gates: &WebhookGates) -> Errors {
    let status = &workload.status;
    let pod_sets: Vec<&str> =
        workload.spec.pod_sets.iter().map(|pod_set| pod_set.name.as_str()).collect();
    let mut errors = check_conditions(workload);
    errors.extend(check_reserved(workload, old));
    for (at, check) in status.admission_checks.iter().enumerate() {
        errors.extend(check_updates(&format!("status.admissionChecks[{at}]"), check, &pod_sets));
    }
    // An admission without a reservation holds no quota, and upstream does not check it.
    if let Some(admission) = status.admission.as_ref().filter(|_| workload.has_quota_reservation())
    {
        errors.extend(check_admission(admission, &pod_sets));
    }
    errors.extend(check_reclaimable(workload, old, gates));
    errors
}

fn check_conditions(workload: &Workload) -> Errors {
    let mut errors = Errors::new();
    for (at, condition) in workload.status.conditions.iter().enumerate() {
        let field = format!("status.conditions[{at}]");
        errors.extend(labels::check_key(&format!("{field}.type"), &condition.r#type));
        // The schema requires the field, and accepts the zero time that Go's encoder writes for none.
        if !condition.has_transition_time() {
            errors.push(FieldError::required(format!("{field}.lastTransitionTime"), ""));
        }
    }
    errors
}

/// A Workload with quota needs an admission. One that was stored without it can still be changed.
fn check_reserved(workload: &Workload, old: Option<&Workload>) -> Option<FieldError> {
    let unrecorded = |workload: &Workload| {
        workload.has_quota_reservation() && workload.status.admission.is_none()
    };
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

/// What is wrong with reclaimable pods.
enum ReclaimableProblem {
    UnknownPodSet,
    MoreThan(i32),
}

fn reclaimable_problem(workload: &Workload, pods: &ReclaimablePod) -> Option<ReclaimableProblem> {
    match count_of(workload, &pods.name) {
        None => Some(ReclaimableProblem::UnknownPodSet),
        Some(count) if pods.count > count => Some(ReclaimableProblem::MoreThan(count)),
        Some(_) => None,
    }
}

/// Number of pods of a pod set.
fn count_of(workload: &Workload, pod_set: &str) -> Option<i32> {
    let found = workload.spec.pod_sets.iter().find(|wanted| wanted.name == pod_set)?;
    Some(count(found))
}

fn check_reclaimable(workload: &Workload, old: Option<&Workload>, gates: &WebhookGates) -> Errors {
    let reclaimable = workload.status.reclaimable_pods.iter();
    let found = reclaimable.filter_map(|pods| Some((pods, reclaimable_problem(workload, pods)?)));
    found
        .filter(|(pods, _)| {
            // Such pods were stored while they were not checked. They block no other change of the object.
            let stored = stored_with(old, pods);
            let stood = stored.is_some_and(|old| reclaimable_problem(old, pods).is_some());
            !stood && !is_kept_after_scale_down(workload, old, pods, gates)
        })
        .map(|(pods, problem)| reclaimable_error(workload, pods, &problem))
        .collect()
}

fn reclaimable_error(
    workload: &Workload,
    pods: &ReclaimablePod,
    problem: &ReclaimableProblem,
) -> FieldError {
    let field = format!("status.reclaimablePods[{}]", pods.name);
    match problem {
        ReclaimableProblem::UnknownPodSet => {
            let supported = workload.spec.pod_sets.iter().map(|pod_set| pod_set.name.as_str());
            FieldError::not_supported(format!("{field}.name"), &pods.name, supported)
        }
        ReclaimableProblem::MoreThan(count) => {
            let detail = format!("should be less or equal to {count}");
            FieldError::invalid(format!("{field}.count"), pods.count, detail)
        }
    }
}

/// The stored Workload, if it has these reclaimable pods.
fn stored_with<'a>(old: Option<&'a Workload>, pods: &ReclaimablePod) -> Option<&'a Workload> {
    old.filter(|old| old.status.reclaimable_pods.contains(pods))
}

/// Whether these reclaimable pods are those of before an elastic pod set was scaled down. The scale-down changes the spec
/// alone.
fn is_kept_after_scale_down(
    workload: &Workload,
    old: Option<&Workload>,
    pods: &ReclaimablePod,
    gates: &WebhookGates,
) -> bool {
    let Some(old) = stored_with(old, pods).filter(|_| is_elastic(workload, gates)) else {
        return false;
    };
    // The count of an assignment is optional, so the request itself is compared, too.
    let shrinks = count_of(workload, &pods.name) < count_of(old, &pods.name);
    shrinks || has_shrunk(workload, &pods.name)
}
