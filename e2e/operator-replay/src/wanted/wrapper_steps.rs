//! Steps in which the official controller of AppWrappers does what ours does not.

use serde_json::Value;

use super::{component_steps::has_component_of, ray_steps::items};
use crate::verdict::Moment;

/// Kinds without a namespace, of those that a manifest may have.
const CLUSTER_SCOPED: [&str; 8] = [
    "Namespace",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
    "Node",
];

/// Whether an AppWrapper has a component of a kind without a namespace.
pub(super) fn has_cluster_scoped_component(wrapper: &Value) -> bool {
    has_component_of(wrapper, &CLUSTER_SCOPED)
}

/// Whether an AppWrapper failed because the name of a component was taken, and the object that had the name is gone.
pub(super) fn deletes_the_object_of_another(moment: &Moment<'_>) -> bool {
    let conditions =
        moment.objects("AppWrapper").flat_map(|wrapper| items(&wrapper["status"]["conditions"]));
    let names = conditions
        .filter_map(|it| it["message"].as_str()?.split_once("resource "))
        .filter_map(|(_, rest)| rest.split_once(" exists, but is not controlled by"))
        .map(|(name, _)| name);
    let is_there = |name: &str| {
        moment.after.values().any(|it| it["metadata"]["name"] == name && it["kind"] != "AppWrapper")
    };
    names.into_iter().any(|name| !is_there(name))
}

/// Whether the deletion of a failed AppWrapper had begun, since its pods are gone, and is paused again.
pub(super) fn pauses_again_without_pods(moment: &Moment<'_>) -> bool {
    let label = "workload.codeflare.dev/appwrapper";
    moment.objects("AppWrapper").any(|wrapper| {
        let mut conditions = items(&wrapper["status"]["conditions"]);
        let is_paused = conditions.any(|it| it["reason"] == "DeletionPaused");
        let is_its = |pod: &Value| pod["metadata"]["labels"][label] == wrapper["metadata"]["name"];
        wrapper["status"]["phase"] == "Failed" && is_paused && !moment.objects("Pod").any(is_its)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wanted::rules_tests::at;

    fn wrapper(phase: &str, condition: &Value) -> Value {
        json!({
            "kind": "AppWrapper", "metadata": {"name": "w"},
            "status": {"phase": phase, "conditions": [condition]},
        })
    }

    fn pod(labels: &Value) -> Value {
        json!({"kind": "Pod", "metadata": {"name": "p1", "labels": labels}})
    }

    #[test]
    fn the_object_of_another_is_gone_after_a_failure() {
        let message =
            "error creating components: resource p1 exists, but is not controlled by appwrapper";
        let failed = wrapper("Failed", &json!({"message": message}));
        let found = |objects: &[Value]| at(&[], objects, deletes_the_object_of_another);
        assert!(found(std::slice::from_ref(&failed)));
        assert!(!found(&[failed, pod(&Value::Null)]));
        assert!(!found(&[wrapper("Failed", &json!({"message": "other"}))]));
    }

    #[test]
    fn a_pause_after_the_pods_are_gone_is_recognised() {
        let paused = wrapper("Failed", &json!({"reason": "DeletionPaused"}));
        let own = pod(&json!({"workload.codeflare.dev/appwrapper": "w"}));
        let found = |objects: &[Value]| at(&[], objects, pauses_again_without_pods);
        assert!(found(std::slice::from_ref(&paused)));
        assert!(!found(&[paused, own]));
        assert!(!found(&[wrapper("Failed", &json!({"reason": "DeletionComplete"}))]));
    }
}
