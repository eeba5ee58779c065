//! Validation of Workloads (docs/reference/kueue.md §5.2).

use std::collections::BTreeMap;

use crds::{
    names::annotations::{ELASTIC_JOB, PRIORITY_BOOST},
    pod::{Container, PodSpec, ResourceRequirements},
    quantity::Quantity,
    v1beta2::{PodSet, PodSetTopologyRequest, Workload},
    validation::{Errors, FieldError, gated_by, labels, negative, slice_layers},
};

use super::{Validate, WebhookGates, workload_status, workload_update};

impl Validate for Workload {
    fn validate(&self, old: Option<&Self>, gates: &WebhookGates) -> Errors {
        let annotations = annotations(self);
        let mut errors = check_min_counts(self, gates);
        for (at, pod_set) in self.spec.pod_sets.iter().enumerate() {
            errors.extend(check_pod_set(&format!("spec.podSets[{at}]"), pod_set, gates));
        }
        errors.extend(workload_status::check(self, old, gates));
        if gates.priority_boost {
            errors.extend(check_priority_boost(annotations));
        }
        if gates.admission_gated_by {
            errors.extend(gated_by::check(annotations));
        }
        if let Some(old) = old {
            errors.extend(workload_update::check(self, old, gates));
        }
        errors
    }
}

/// The annotations of a Workload.
pub(super) fn annotations(workload: &Workload) -> &BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    workload.metadata.annotations.as_ref().unwrap_or(&NONE)
}

/// Whether the Workload belongs to an elastic job.
pub(super) fn is_elastic(workload: &Workload, gates: &WebhookGates) -> bool {
    gates.elastic_jobs
        && annotations(workload).get(ELASTIC_JOB).is_some_and(|value| value == "true")
}

fn check_min_counts(workload: &Workload, gates: &WebhookGates) -> Errors {
    let partial =
        workload.spec.pod_sets.iter().filter(|pod_set| pod_set.min_count.is_some()).count();
    let mut errors = Errors::new();
    // Partial admission searches one count, which scales a single pod set (docs/reference/kueue.md
    // §4.5).
    if partial > 1 {
        errors.push(FieldError::invalid(
            "spec.podSets",
            partial,
            "at most one podSet can use minCount",
        ));
    }
    // Both change the number of pods, one before and one after admission.
    if partial > 0 && is_elastic(workload, gates) {
        errors.push(FieldError::invalid(
            "spec.podSets",
            partial,
            "partial admission and elastic job cannot be used together",
        ));
    }
    errors
}

fn check_pod_set(field: &str, pod_set: &PodSet, gates: &WebhookGates) -> Errors {
    let template = format!("{field}.template");
    let mut errors = Errors::new();
    if let Some(spec) = &pod_set.template.spec {
        errors.extend(check_pod(&format!("{template}.spec"), spec, gates));
    }
    if let Some(metadata) = pod_set.template.metadata.as_ref().filter(|_| gates.pod_set_metadata) {
        let field = format!("{template}.metadata");
        errors.extend(labels::check_labels(&format!("{field}.labels"), metadata.labels.iter()));
        errors.extend(labels::check_annotations(
            &format!("{field}.annotations"),
            &metadata.annotations,
        ));
    }
    if let Some(request) = pod_set.topology_request.as_ref().filter(|_| gates.slice_size) {
        errors.extend(check_slices(&format!("{field}.topologyRequest"), request));
    }
    errors
}

/// Slices have a topology and a size, or layers of which each is in the one before.
fn check_slices(field: &str, request: &PodSetTopologyRequest) -> Errors {
    let mut errors = Errors::new();
    let size = format!("{field}.podSetSliceSize");
    match (&request.pod_set_slice_required_topology, request.pod_set_slice_size) {
        (None, Some(_)) => errors.push(FieldError::forbidden(
            size,
            "may not be set when podSetSliceRequiredTopology is not specified",
        )),
        (Some(_), None) => errors.push(FieldError::required(
            size,
            "must be set when podSetSliceRequiredTopology is specified",
        )),
        _ => {}
    }
    let layers = format!("{field}.podsetSliceRequiredTopologyConstraints");
    let constraints = &request.podset_slice_required_topology_constraints;
    errors.extend(slice_layers::check(&layers, constraints));
    errors
}

fn check_pod(field: &str, pod: &PodSpec, gates: &WebhookGates) -> Errors {
    let containers = |list: &'static str, containers: &[Container]| -> Errors {
        let each = containers.iter().enumerate();
        each.filter_map(|(at, container)| Some((at, container.resources.as_ref()?)))
            .flat_map(|(at, resources)| {
                check_resources(&format!("{field}.{list}[{at}].resources"), resources, gates)
            })
            .collect()
    };
    // In this order: messages list the errors of initContainers first, as upstream's do.
    let mut errors = containers("initContainers", &pod.init_containers);
    errors.extend(containers("containers", &pod.containers));
    if let Some(resources) = &pod.resources {
        errors.extend(check_resources(&format!("{field}.resources"), resources, gates));
    }
    errors
}

/// Requests and limits: a missing request is the limit (docs/reference/kueue.md §2.7).
fn check_resources(field: &str, resources: &ResourceRequirements, gates: &WebhookGates) -> Errors {
    let mut errors = check_amounts(&format!("{field}.requests"), &resources.requests, gates);
    errors.extend(check_amounts(&format!("{field}.limits"), &resources.limits, gates));
    errors
}

/// `pods` is reserved for the number of pods of a pod set; no amount may name it.
fn check_amounts(
    field: &str,
    amounts: &BTreeMap<String, Quantity>,
    gates: &WebhookGates,
) -> Errors {
    let mut errors = Errors::new();
    for (name, amount) in amounts {
        let field = format!("{field}[{name}]");
        if name == "pods" {
            errors.push(FieldError::invalid(
                &field,
                "pods",
                "the key is reserved for internal kueue use",
            ));
        }
        if gates.non_negative_resources && amount.is_negative() {
            errors.push(negative(&field, amount));
        }
    }
    errors
}

fn check_priority_boost(annotations: &BTreeMap<String, String>) -> Option<FieldError> {
    let value = annotations.get(PRIORITY_BOOST)?;
    let detail = match value.as_str() {
        "" => "must be a valid signed integer; use \"0\" explicitly, empty string is not allowed",
        text if text.parse::<i32>().is_err() => "must be a valid signed integer",
        _ => return None,
    };
    Some(FieldError::invalid(format!("metadata.annotations[{PRIORITY_BOOST}]"), value, detail))
}
