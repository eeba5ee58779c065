//! Rules for the groups of a cluster.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use std::collections::BTreeMap;

use crds::validation::labels::{key_problems, value_problems};
use serde_json::Value;

use super::{
    context::ClusterContext,
    group_size::MOST_PODS_PER_PASS,
    probes::{version, version_problem},
    validate::{AUTOSCALER_V2, Checked},
};
use crate::{json::items, names, v1::WorkerGroupSpec};

/// Checks the group of the head, as far as it is like a group of workers.
pub(crate) fn check_head_group(context: &ClusterContext<'_>) -> Checked {
    let head = &context.spec.head_group_spec;
    check_containers("headGroupSpec", &head.template)?;
    check_group("Head", &head.ray_start_params, &head.resources, &head.labels)
}

/// Checks a group of workers.
pub(crate) fn check_worker_group(context: &ClusterContext<'_>, group: &WorkerGroupSpec) -> Checked {
    let name = &group.group_name;
    check_containers("workerGroupSpec", &group.template)?;
    if name == names::HEAD_GROUP {
        // Pods of such a group would look like the head.
        return Err(format!("worker group name {name} is the name of the group of the head"));
    }
    check_size(context, group)?;
    check_group(name, &group.ray_start_params, &group.resources, &group.labels)?;
    check_idle_timeout(context, group)?;
    check_priority(context, group)
}

fn check_containers(place: &str, template: &Value) -> Checked {
    if items(&template["spec"]["containers"]).is_empty() {
        Err(format!("{place} should have at least one container"))
    } else {
        Ok(())
    }
}

fn check_size(context: &ClusterContext<'_>, group: &WorkerGroupSpec) -> Checked {
    let name = &group.group_name;
    if !context.is_autoscaling() && (group.min_replicas.is_none() || group.max_replicas.is_none()) {
        return Err(format!(
            "worker group {name} must set both minReplicas and maxReplicas when autoscaling is disabled"
        ));
    }
    let fewest = group.min_replicas.unwrap_or_default();
    let most = group.max_replicas.unwrap_or(i32::MAX);
    for (field, value) in [("minReplicas", fewest), ("maxReplicas", most)] {
        if value < 0 {
            return Err(format!("worker group {name} has negative {field} {value}"));
        }
    }
    if fewest > most {
        return Err(format!(
            "worker group {name} has minReplicas {fewest} greater than maxReplicas {most}"
        ));
    }
    let hosts = group.num_of_hosts.unwrap_or(1);
    // A replica is made as a whole, and a pass is bounded.
    if usize::try_from(hosts).is_ok_and(|hosts| hosts > MOST_PODS_PER_PASS) {
        return Err(format!(
            "worker group {name} has numOfHosts {hosts}, more than {MOST_PODS_PER_PASS}"
        ));
    }
    Ok(())
}

/// Parameters that the fields `resources` and `labels` replace.
fn check_group(
    group: &str,
    params: &BTreeMap<String, String>,
    resources: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
) -> Checked {
    let counted = ["num-cpus", "memory", "num-gpus", "resources"];
    let is_set = |name: &str| params.get(name).is_some_and(|value| !value.is_empty());
    if !resources.is_empty() && counted.into_iter().any(is_set) {
        return Err(format!(
            "resource fields should not be set in both rayStartParams and Resources for {group} group; please use only one"
        ));
    }
    if params.contains_key("labels") {
        return Err(format!(
            "rayStartParams['labels'] is not supported for {group} group; please use the top-level Labels field instead"
        ));
    }
    let problems: Vec<String> =
        labels.iter().flat_map(|(key, value)| label_problems(group, key, value)).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

fn label_problems(group: &str, key: &str, value: &str) -> Vec<String> {
    let of_key = key_problems(key)
        .into_iter()
        .map(|problem| format!("invalid label key for {group} group: '{key}', error: {problem}"));
    let of_value = value_problems(value).into_iter().map(|problem| {
        format!("invalid label value for key '{key}' in {group} group: '{value}', error: {problem}")
    });
    of_key.chain(of_value).collect()
}

/// Whether the second autoscaler is chosen, also while autoscaling is off: a cluster stays valid when it is switched off. The variable
/// without autoscaling is refused later.
fn knows_v2_fields(context: &ClusterContext<'_>) -> bool {
    context.chooses_autoscaler_v2()
        || matches!(context.head_variable(AUTOSCALER_V2), Some("1" | "true"))
}

fn check_idle_timeout(context: &ClusterContext<'_>, group: &WorkerGroupSpec) -> Checked {
    let name = &group.group_name;
    let Some(seconds) = group.idle_timeout_seconds else { return Ok(()) };
    if seconds < 0 {
        return Err(format!(
            "worker group {name}: idleTimeoutSeconds must be non-negative, got {seconds}"
        ));
    }
    if !knows_v2_fields(context) {
        return Err(format!(
            "worker group {name}: idleTimeoutSeconds is set, but autoscaler v2 is not enabled. Please set .spec.autoscalerOptions.version to 'v2' (or set {AUTOSCALER_V2} environment variable to 'true' in the head pod if using KubeRay < 1.4.0)"
        ));
    }
    Ok(())
}

fn check_priority(context: &ClusterContext<'_>, group: &WorkerGroupSpec) -> Checked {
    let name = &group.group_name;
    let Some(priority) = group.priority.filter(|priority| *priority != 0) else { return Ok(()) };
    let present = &context.spec.ray_version;
    let refused = |why: String| Err(format!("worker group {name}: priority is set, but {why}"));
    if present.is_empty() {
        return refused(
            "RayVersion was not specified. Ray version 2.56.0 or later is required".to_owned(),
        );
    }
    // A version without numbers, such as `nightly`, is refused like an old one, as in the official operator.
    let Some(at) = version(present) else {
        let problem = version_problem(present);
        return refused(format!("RayVersion format is invalid: {present}, {problem}"));
    };
    if at < (2, 56, 0) {
        return refused(format!("minimum Ray version is 2.56.0, got {present}"));
    }
    if knows_v2_fields(context) {
        return Ok(());
    }
    Err(format!(
        "worker group {name}: priority is set to {priority}, but autoscaler v2 is not enabled. Priority is only supported with autoscaler v2 enabled"
    ))
}
