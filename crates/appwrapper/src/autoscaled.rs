//! Worker groups of Ray clusters that Ray's autoscaler sizes (`enableInTreeAutoscaling`).
//!
//! The pod set of a group counts its `replicas`. Admission is about that number, so it is the most that the autoscaler gets; of a declared
//! pod set it is at most the declared number. Below it the autoscaler is free: workers that it gives up are not missing.
//! The official controller does neither: workers beyond the number run without quota, and a cluster that became smaller is made
//! again until no retry is left.

use serde_json::{Value, json};

use crate::{
    json::{field, text},
    names,
    pod_sets::replicas,
    state::WrapperState,
    template_path::pointer,
    v1beta2::{AppWrapperComponent, AppWrapperComponentStatus, AppWrapperPodSet},
};

/// Where a component has the status of its RayCluster: a RayCluster, a RayJob, a RayService.
const CLUSTER_STATUS: [&str; 3] =
    ["/status", "/status/rayClusterStatus", "/status/activeServiceStatus/rayClusterStatus"];

/// Limits the groups of an object to the numbers that were admitted for the pod sets of its status. One that no queue admitted has no limit
/// but its own.
pub(crate) fn limit_groups(
    made: &mut Value,
    component: &AppWrapperComponent,
    recorded: &[AppWrapperPodSet],
) {
    if component.pod_set_infos.is_empty() {
        return;
    }
    for pod_set in recorded {
        let pointer = group_pointer(made, &pod_set.path);
        let Some(group) = pointer.and_then(|pointer| made.pointer_mut(&pointer)) else { continue };
        let admitted = fewest_admitted(component, pod_set);
        // Groups that admit fewer keep their limit, and a minimum beyond the limit would be refused.
        for bound in ["minReplicas", "maxReplicas"] {
            let own = group[bound].as_i64();
            if own.is_some_and(|own| own > admitted) || own.is_none() && bound == "maxReplicas" {
                *field(group, bound) = json!(admitted);
            }
        }
    }
}

/// The fewest pods that a queue has admitted for a pod set of the status. Kueue counts a declared group within the bounds of the
/// object, other versions of it count what is declared; and the AppWrapper does not show which of them admitted it.
fn fewest_admitted(component: &AppWrapperComponent, recorded: &AppWrapperPodSet) -> i64 {
    let declared = component.pod_sets.iter().find(|declared| declared.path == recorded.path);
    declared.map_or(i64::MAX, replicas).min(replicas(recorded))
}

/// How many pods a running AppWrapper should have.
pub(crate) fn expected_pods(state: &WrapperState<'_>) -> i64 {
    // Those of the status include the inferred ones.
    let components = state.spec.components.iter().zip(&state.status.component_status);
    let expected = components.enumerate().map(|(index, (component, status))| {
        let desired = || desired_workers(state.object_of(index)?);
        expected_of(component, status, state.is_true(names::PODS_READY), desired)
    });
    expected.sum()
}

fn expected_of(
    component: &AppWrapperComponent,
    status: &AppWrapperComponentStatus,
    was_ready: bool,
    desired: impl FnOnce() -> Option<i64>,
) -> i64 {
    let (mut fixed, mut sized, mut least) = (0, 0, 0);
    let is_limited = !component.pod_set_infos.is_empty();
    for pod_set in &status.pod_sets {
        match group_pointer(&component.template, &pod_set.path) {
            Some(pointer) => {
                let number = if is_limited {
                    fewest_admitted(component, pod_set)
                } else {
                    replicas(pod_set)
                };
                let minimum = component.template.pointer(&pointer).map(|it| &it["minReplicas"]);
                least += minimum.and_then(Value::as_i64).unwrap_or(0).min(number).max(0);
                sized += number;
            }
            None => fixed += replicas(pod_set),
        }
    }
    // A cluster that was ready once may have shrunk, and grows again at any time: pods are not missing while they are awaited.
    let workers =
        if was_ready { least } else { desired().map_or(sized, |desired| desired.min(sized)) };
    fixed + workers
}

/// The workers that the autoscaler wants at present, as the operator of Ray reports them; none before it does.
fn desired_workers(object: &Value) -> Option<i64> {
    let mut reported = CLUSTER_STATUS.iter().filter_map(|pointer| object.pointer(pointer));
    // No number beside a state means zero.
    let status = reported.find(|status| !text(&status["state"]).is_empty())?;
    Some(status["desiredWorkerReplicas"].as_i64().unwrap_or(0))
}

/// The JSON pointer of the group with this pod template, if an autoscaler sizes it.
fn group_pointer(template: &Value, path: &str) -> Option<String> {
    let group = path.strip_suffix(".template").filter(|group| group.ends_with(']'))?;
    let (cluster, _) = group.rsplit_once(".workerGroupSpecs[")?;
    let cluster = template.pointer(&pointer(cluster).ok()?)?;
    (cluster["enableInTreeAutoscaling"] == true).then(|| pointer(group).ok()).flatten()
}
