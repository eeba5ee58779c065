//! Validation rules of pods only (docs/reference/kueue.md §5.3).

use crds::{
    names::{
        MANAGED,
        annotations::{POD_GROUP_TOTAL_COUNT, RETRIABLE_IN_GROUP},
        labels::POD_GROUP_NAME,
    },
    validation::{Errors, FieldError, immutable, labels::subdomain_problems},
};

use super::{Pod, pod::GroupName};
use crate::{
    GenericJob, JobGates, go_parse,
    prebuilt::prebuilt_name,
    validate::{AnnotatedTemplate, topology},
};

/// Errors of a new pod.
pub(super) fn create(pod: &Pod, gates: JobGates) -> Errors {
    let mut errors = check_managed(pod);
    errors.extend(check_group(pod, gates));
    errors.extend(check_prebuilt(pod, gates));
    errors.extend(check_topology(pod, gates));
    errors
}

/// Errors of an update.
pub(super) fn update(pod: &Pod, old: &Pod, gates: JobGates) -> Errors {
    let mut errors = check_managed(pod);
    errors.extend(check_group(pod, gates));
    errors.extend(check_group_change(pod, old, gates));
    errors.extend(check_prebuilt(pod, gates));
    // The group may have ended because of the mark (docs/reference/kueue.md §7.9).
    let is_member = !pod.group(gates).name.is_empty();
    if is_member && old.is_unretriable() && !pod.is_unretriable() {
        let field = format!("metadata.annotations[{RETRIABLE_IN_GROUP}]");
        let detail = "unretriable pod group can't be converted to retriable";
        errors.push(FieldError::forbidden(field, detail));
    }
    errors.extend(check_topology(pod, gates));
    errors
}

/// The number of pods that share the annotations is not known here, so that any size of a slice may be right. Upstream refuses
/// them without topology-aware scheduling as well.
fn check_topology(pod: &Pod, gates: JobGates) -> Errors {
    let template = AnnotatedTemplate {
        path: "metadata".to_owned(),
        annotations: pod.metadata.annotations.as_ref(),
        count: i32::MAX,
    };
    topology::check(&[template], gates)
}

fn check_managed(pod: &Pod) -> Errors {
    let field = || format!("metadata.labels[{MANAGED}]");
    match pod.label(MANAGED) {
        Some("true") | None => vec![],
        Some(_) => {
            vec![FieldError::forbidden(field(), "managed label value can only be 'true'")]
        }
    }
}

/// Name and total of a group come together.
fn check_group(pod: &Pod, gates: JobGates) -> Errors {
    let group = pod.group(gates);
    let total = pod.annotation(POD_GROUP_TOTAL_COUNT);
    let total_field = format!("metadata.annotations[{POD_GROUP_TOTAL_COUNT}]");
    let missing = |field: String| {
        let kind = if group.annotated { "annotation" } else { "label" };
        let detail = format!(
            "both the '{POD_GROUP_TOTAL_COUNT}' annotation and the '{POD_GROUP_NAME}' {kind} should be set"
        );
        vec![FieldError::required(field, detail)]
    };
    match (group.name.is_empty(), total) {
        (true, None) => vec![],
        (true, Some(_)) => missing(field_of(group)),
        (false, total) => {
            let problems = subdomain_problems(group.name).into_iter();
            let mut errors: Errors = problems
                .map(|problem| FieldError::invalid(field_of(group), group.name, problem))
                .collect();
            match total {
                Some(total) => errors.extend(check_total(total_field, total)),
                None => errors.extend(missing(total_field)),
            }
            errors
        }
    }
}

fn check_total(field: String, total: &str) -> Option<FieldError> {
    match go_parse::integer(total) {
        Ok(number) if number > 0 => None,
        Ok(_) => {
            let detail = format!(
                "incorrect annotation value '{POD_GROUP_TOTAL_COUNT}={total}': group total count should be greater than zero"
            );
            Some(FieldError::invalid(field, total, detail))
        }
        Err(problem) => Some(FieldError::invalid(field, total, problem)),
    }
}

/// A pod stays in its group. It may join one while it is in none.
fn check_group_change(pod: &Pod, old: &Pod, gates: JobGates) -> Errors {
    let (now, before) = (pod.group(gates), old.group(gates));
    if before.name.is_empty() || now.name == before.name {
        return vec![];
    }
    let field = if now.name.is_empty() { field_of(before) } else { field_of(now) };
    vec![immutable(field, now.name)]
}

fn field_of(group: GroupName<'_>) -> String {
    let map = if group.annotated { "annotations" } else { "labels" };
    format!("metadata.{map}[{POD_GROUP_NAME}]")
}

/// The Workload of a group has the name of the group.
fn check_prebuilt(pod: &Pod, gates: JobGates) -> Errors {
    let (group, prebuilt) = (pod.group(gates), prebuilt_name(pod, gates));
    if group.name.is_empty() || prebuilt.name.is_empty() || group.name == prebuilt.name {
        return vec![];
    }
    let detail = "prebuilt workload and pod group should be equal";
    vec![FieldError::invalid(prebuilt.field(), prebuilt.name, detail)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_with_an_invalid_name_and_no_total_is_refused_for_both() {
        let pod = json!({
            "metadata": { "name": "p", "labels": { "kueue.x-k8s.io/pod-group-name": "a_b" } },
            "spec": { "containers": [] },
        });
        let pod: Pod = serde_json::from_value(pod).expect("a pod decodes");
        let errors = check_group(&pod, JobGates::default());
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let [name, total] = texts.as_slice() else { panic!("{texts:?}") };
        assert!(
            name.starts_with("metadata.labels[kueue.x-k8s.io/pod-group-name]: Invalid value: ")
        );
        assert!(
            total.starts_with(
                "metadata.annotations[kueue.x-k8s.io/pod-group-total-count]: Required"
            )
        );
    }
}
