//! What components and pods of a running AppWrapper say.
//!
//! Source: docs/reference/appwrapper.md §2 "Running health order".

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    autoscaled::expected_pods,
    component::any_requests,
    json::{is_terminating, items, text},
    pod_sets::total,
    state::WrapperState,
};

/// Numbers of pods by their state.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodCounts {
    pub(crate) expected: i64,
    pub(crate) pending: i64,
    pub(crate) running: i64,
    pub(crate) succeeded: i64,
    pub(crate) failed: i64,
    /// Nodes that running pods must leave.
    pub(crate) evicting: BTreeSet<String>,
    /// Whether a failed pod ended in a way that makes another attempt useless.
    pub(crate) is_final: bool,
}

/// Numbers of components.
pub(crate) struct ComponentCounts {
    pub(crate) deployed: usize,
    pub(crate) failed: usize,
}

/// Counts the pods of an AppWrapper.
pub(crate) fn count_pods(state: &WrapperState<'_>) -> PodCounts {
    let mut counts = PodCounts { expected: expected_pods(state), ..PodCounts::default() };
    for pod in state.pods() {
        match text(&pod["status"]["phase"]) {
            // It is neither: its end is awaited.
            "Running" if is_terminating(pod) => {}
            "Running" => {
                counts.running += 1;
                if must_leave(state, pod) {
                    counts.evicting.insert(text(&pod["spec"]["nodeName"]).to_owned());
                }
            }
            "Succeeded" => counts.succeeded += 1,
            "Failed" => {
                counts.failed += 1;
                counts.is_final |= is_final_failure(state, pod);
            }
            // Its node does not answer, so it is none of these.
            "Unknown" => {}
            _ => counts.pending += 1,
        }
    }
    let present = counts.pending + counts.running + counts.succeeded + counts.failed;
    // A cluster that stays after its job has its pods still, which are counted above.
    let missing = (counts.expected - present).max(0);
    counts.succeeded += pods_of_complete_jobs(state).min(missing);
    counts
}

/// The pods that RayJobs had which are complete. The operator deletes them with their RayCluster.
///
/// The official controller misses them, and runs a RayJob that succeeded again.
fn pods_of_complete_jobs(state: &WrapperState<'_>) -> i64 {
    let complete = state.status.component_status.iter().enumerate().filter(|(index, _)| {
        state.object_of(*index).is_some_and(|object| deployment_of_ray_job(object) == "Complete")
    });
    complete.map(|(_, status)| total(status.pod_sets.iter())).sum()
}

/// How far a RayJob is; empty for other kinds.
fn deployment_of_ray_job(object: &Value) -> &str {
    let is_ray_job =
        object["kind"] == "RayJob" && text(&object["apiVersion"]).starts_with("ray.io/");
    if is_ray_job { text(&object["status"]["jobDeploymentStatus"]) } else { "" }
}

/// Whether a pod uses a resource because of which its node is to be evacuated.
fn must_leave(state: &WrapperState<'_>, pod: &Value) -> bool {
    let node = text(&pod["spec"]["nodeName"]);
    let resources = state.facts.evicted_nodes.get(node);
    let containers = &pod["spec"]["containers"];
    resources.is_some_and(|names| names.iter().any(|name| any_requests(containers, name)))
}

/// Whether an exit code of a pod is final: it is listed as final, or others are listed as the ones worth another attempt.
fn is_final_failure(state: &WrapperState<'_>, pod: &Value) -> bool {
    let (terminal, retryable) =
        (state.codes("terminalExitCodes"), state.codes("retryableExitCodes"));
    let codes = items(&pod["status"]["containerStatuses"]).iter();
    let mut codes = codes.filter_map(|it| it["state"]["terminated"]["exitCode"].as_i64());
    codes.any(|code| {
        let not_retryable = !retryable.is_empty() && !retryable.contains(&code);
        // A pod that failed may have containers that ended well.
        code != 0 && (terminal.contains(&code) || not_retryable)
    })
}

/// Counts the components that are there, and those that failed.
pub(crate) fn count_components(state: &WrapperState<'_>) -> ComponentCounts {
    let mut counts = ComponentCounts { deployed: 0, failed: 0 };
    let objects = (0..state.spec.components.len()).filter_map(|index| state.object_of(index));
    // One that is being deleted will not run again.
    for object in objects.filter(|object| !is_terminating(object)) {
        counts.deployed += 1;
        counts.failed += usize::from(has_failed(object));
    }
    counts
}

/// Whether a Job, a PyTorchJob or a RayJob says that it failed. Other kinds are judged by their pods.
fn has_failed(object: &Value) -> bool {
    // Its pods are gone, or run on without work.
    if matches!(deployment_of_ray_job(object), "Failed" | "ValidationFailed") {
        return true;
    }
    let is_known = matches!(
        (text(&object["apiVersion"]), text(&object["kind"])),
        ("batch/v1", "Job") | ("kubeflow.org/v1", "PyTorchJob")
    );
    let mut conditions = items(&object["status"]["conditions"]).iter();
    is_known && conditions.any(|it| it["type"] == "Failed" && it["status"] == "True")
}
