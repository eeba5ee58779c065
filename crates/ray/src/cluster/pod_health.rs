//! Which pods must be replaced.
//!
//! Source: docs/reference/ray.md §3 "Pods (reconcilePods)".

use serde_json::Value;

use crate::json::{items, text};

/// The phase of a pod.
pub(crate) fn phase(pod: &Value) -> &str {
    text(&pod["status"]["phase"])
}

/// The status of the condition Ready; none if the pod has no such condition.
pub(crate) fn readiness(pod: &Value) -> Option<&Value> {
    items(&pod["status"]["conditions"]).iter().find(|condition| condition["type"] == "Ready")
}

/// Whether a pod runs and is ready.
pub(crate) fn is_running_and_ready(pod: &Value) -> bool {
    phase(pod) == "Running" && readiness(pod).is_some_and(|ready| ready["status"] == "True")
}

/// Whether a pod counts as running for its cluster: the condition Ready is not false. One without the condition passes, as with the
/// official operator.
pub(crate) fn runs(pod: &Value) -> bool {
    phase(pod) == "Running" && readiness(pod).is_none_or(|ready| ready["status"] == "True")
}

/// The terminated state of the Ray container.
fn ray_terminated(pod: &Value) -> Option<&Value> {
    let ray = &pod["spec"]["containers"][0]["name"];
    let statuses = items(&pod["status"]["containerStatuses"]);
    // By name, because statuses are not in the order of the containers.
    let status = statuses.iter().find(|status| status["name"] == *ray)?;
    Some(&status["state"]["terminated"]).filter(|state| !state.is_null())
}

/// Whether a pod is at its end: it has failed or succeeded, or its Ray container ended and is not restarted. Other ends are left to the
/// kubelet.
pub(crate) fn must_be_replaced(pod: &Value) -> bool {
    let ended = matches!(phase(pod), "Failed" | "Succeeded");
    let never = pod["spec"]["restartPolicy"] == "Never";
    ended || (phase(pod) == "Running" && never && ray_terminated(pod).is_some())
}

/// The state of a pod at its end, for messages.
pub(crate) fn end_of(pod: &Value) -> String {
    let policy = match text(&pod["spec"]["restartPolicy"]) {
        "" => "Always",
        policy => policy,
    };
    let terminated = terminated_text(pod);
    format!(
        "Pod status: {}; Pod restart policy: {policy}; Ray container terminated status: {terminated}",
        phase(pod)
    )
}

/// The terminated state of the Ray container, as Go prints it.
pub(crate) fn terminated_text(pod: &Value) -> String {
    ray_terminated(pod).map_or_else(|| "nil".to_owned(), terminated_state)
}

fn terminated_state(state: &Value) -> String {
    let number = |name: &str| state[name].as_i64().unwrap_or_default();
    format!(
        "&ContainerStateTerminated{{ExitCode:{},Signal:{},Reason:{},Message:{},StartedAt:{},FinishedAt:{},ContainerID:{},}}",
        number("exitCode"),
        number("signal"),
        text(&state["reason"]),
        text(&state["message"]),
        text(&state["startedAt"]),
        text(&state["finishedAt"]),
        text(&state["containerID"]),
    )
}
