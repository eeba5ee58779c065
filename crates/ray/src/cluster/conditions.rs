//! Conditions of a RayCluster.
//!
//! Source: docs/reference/ray.md §3 "Status".

use jiff::Timestamp;
use serde_json::Value;

use super::{
    failure::Failure,
    pod_health::{readiness, runs},
    suspension::Suspension,
};
use crate::{
    json::{items, text},
    names,
};

/// A condition as it should be.
pub(crate) struct WantedCondition {
    pub(crate) kind: &'static str,
    pub(crate) is_true: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl WantedCondition {
    fn new(kind: &'static str, is_true: bool, reason: &str, message: &str) -> Self {
        Self { kind, is_true, reason: reason.to_owned(), message: message.to_owned() }
    }
}

/// Writes conditions into a list. The time of the last transition changes with the status only.
pub(crate) fn set(conditions: &mut Vec<Value>, wanted: &WantedCondition, now: Timestamp) {
    let status = if wanted.is_true { "True" } else { "False" };
    let present = conditions.iter_mut().find(|condition| condition["type"] == wanted.kind);
    let unchanged = present.as_ref().filter(|condition| condition["status"] == status);
    let since = unchanged.map(|condition| condition["lastTransitionTime"].clone());
    let condition = serde_json::json!({
        "lastTransitionTime": since.unwrap_or_else(|| rfc3339(now).into()),
        "message": wanted.message,
        "reason": wanted.reason,
        "status": status,
        "type": wanted.kind,
    });
    match present {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}

/// A time in whole seconds, as the API server stores it.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let seconds = Timestamp::from_second(time.as_second()).unwrap_or(time);
    seconds.to_string()
}

/// The condition for a pod that could not be made or deleted.
pub(crate) fn replica_failure(failure: Option<&Failure>) -> Option<WantedCondition> {
    let failure = failure?;
    // Failures of other objects than pods have no condition; they repeat the pass sooner.
    let reason = failure.condition?;
    let message = format!("{reason}\n{}", failure.message);
    Some(WantedCondition::new(names::REPLICA_FAILURE, true, reason, &message))
}

/// Whether the head is ready, and why not.
pub(crate) fn head_pod_ready(head: Option<&Value>) -> WantedCondition {
    let condition = |is_true, reason: &str, message: &str| {
        WantedCondition::new(names::HEAD_POD_READY, is_true, reason, message)
    };
    let Some(head) = head else {
        return condition(false, "HeadPodNotFound", "Head Pod not found");
    };
    // The kubelet has not reported the pod yet.
    let Some(ready) = readiness(head) else {
        return condition(false, "Unknown", "");
    };
    // Whatever the phase, as with the official operator.
    if ready["status"] == "True" {
        let reason = match text(&ready["reason"]) {
            "" => "HeadPodRunningAndReady",
            reason => reason,
        };
        return condition(true, reason, text(&ready["message"]));
    }
    let reason = match text(&ready["reason"]) {
        "" => "Unknown",
        reason => reason,
    };
    // The reason of the container says more, for example `ErrImagePull`.
    if reason == "ContainersNotReady"
        && let Some((reason, message)) = stopped_container(head)
    {
        return condition(false, reason, &joined(text(&ready["message"]), message));
    }
    condition(false, reason, text(&ready["message"]))
}

/// The message of the pod, which names all containers that are not ready, and that of one container.
fn joined(of_pod: &str, of_container: String) -> String {
    if of_pod.is_empty() { of_container } else { format!("{of_pod}; {of_container}") }
}

/// The first container that waits or ended: its reason, and its name and message.
fn stopped_container(pod: &Value) -> Option<(&str, String)> {
    let statuses = items(&pod["status"]["containerStatuses"]).iter();
    let mut stopped = statuses.filter_map(|status| {
        let states = [&status["state"]["waiting"], &status["state"]["terminated"]];
        let state = states.into_iter().find(|state| !state.is_null())?;
        let message = format!("{}: {}", text(&status["name"]), text(&state["message"]));
        Some((text(&state["reason"]), message)).filter(|(reason, _)| !reason.is_empty())
    });
    stopped.next()
}

/// Whether all pods ran once, by the same rule as for the state.
pub(crate) fn provisioned(
    was_provisioned: bool,
    suspension: Suspension,
    head: Option<&Value>,
    pods: &[&Value],
) -> Option<WantedCondition> {
    const KIND: &str = names::PROVISIONED;
    let provisioning =
        |message| WantedCondition::new(KIND, false, "RayClusterPodsProvisioning", message);
    // Only the end of a suspension resets the condition, not the end of pods.
    if suspension == Suspension::Suspended {
        return Some(provisioning("RayCluster has been suspended"));
    }
    // The condition is about the first time, so it stays true when pods fail later.
    if was_provisioned {
        return None;
    }
    // Workers alone are no cluster: the official operator takes them for one while the head is being replaced.
    if head.is_some() && pods.iter().all(|pod| runs(pod)) {
        let message = "All Ray Pods are ready for the first time";
        return Some(WantedCondition::new(KIND, true, "AllPodRunningAndReadyFirstTime", message));
    }
    Some(provisioning("RayCluster Pods are being provisioned for first time"))
}

/// The two conditions of the suspension.
pub(crate) fn suspension(suspension: Suspension) -> [WantedCondition; 2] {
    let condition = |kind, is_true| WantedCondition::new(kind, is_true, kind, "");
    [
        condition(names::SUSPENDED, suspension == Suspension::Suspended),
        condition(names::SUSPENDING, suspension == Suspension::Suspending),
    ]
}
