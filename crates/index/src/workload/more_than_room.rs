//! Pods that need more of a node than room, labels and taints (docs/reference/dispatch.md §4): a worker's agent, which reads
//! only these, leaves the choice of nodes to the scheduler.

use crds::{
    pod::{NamedItem, PodSpec},
    v1beta2::Workload,
};
use dispatch::JobGvk;
use serde_json::Value;

use super::workload_slice::is_elastic;

/// Kinds with controllers that make further pods while the first ones run, for an upgrade, or move pods away from a node themselves.
const WITH_OTHER_PODS: [(&str, &str); 2] =
    [("ray.io", "RayService"), ("workload.codeflare.dev", "AppWrapper")];

/// Whether pods may come that were not counted, and run beside the first ones or elsewhere.
pub(super) fn may_get_other_pods(workload: &Workload, kind: &JobGvk) -> bool {
    is_elastic(workload) || WITH_OTHER_PODS.contains(&(&*kind.group, &*kind.kind))
}

/// Whether the scheduler looks at more: other pods, volumes, devices, ports.
pub(super) fn needs_more_than_room(pod: &PodSpec) -> bool {
    let field = |name: &str| pod.rest.get(name).unwrap_or(&Value::Null);
    let affinity = |kind: &str| {
        !is_empty(&field("affinity")[kind]["requiredDuringSchedulingIgnoredDuringExecution"])
    };
    affinity("podAffinity")
        || affinity("podAntiAffinity")
        || any(field("topologySpreadConstraints"), is_strict)
        || pod.volumes.iter().flatten().any(is_bound_to_nodes)
        || !is_empty(field("resourceClaims"))
        || field("nodeName").is_string()
        || field("hostNetwork") == true
        || pod.containers.iter().chain(&pod.init_containers).any(|container| {
            let ports = container.rest.get("ports").unwrap_or(&Value::Null);
            any(ports, |port| port["hostPort"].as_i64().is_some_and(|port| port > 0))
        })
}

/// Without the field the API server sets DoNotSchedule.
fn is_strict(constraint: &Value) -> bool {
    constraint["whenUnsatisfiable"] != "ScheduleAnyway"
}

/// A claimed volume may exist on some nodes only.
fn is_bound_to_nodes(volume: &NamedItem) -> bool {
    let has = |source: &str| volume.rest.get(source).is_some_and(|source| !source.is_null());
    has("persistentVolumeClaim") || has("ephemeral")
}

fn any(list: &Value, test: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|all| all.iter().any(test))
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use crds::names::annotations::{ELASTIC_JOB, WORKLOAD_SLICE_NAME};
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_that_come_later_run_wherever_they_fit() {
        let workload = |annotation: &str| -> Workload {
            let value = json!({ "metadata": { "annotations": { annotation: "true" } } });
            serde_json::from_value(value).expect("a Workload")
        };
        let kind = |group: &str, kind: &str| JobGvk {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
        };
        for (annotation, of, expected) in [
            ("a", kind("batch", "Job"), false),
            ("a", kind("ray.io", "RayCluster"), false),
            ("a", kind("ray.io", "RayService"), true),
            ("a", kind("workload.codeflare.dev", "AppWrapper"), true),
            (ELASTIC_JOB, kind("batch", "Job"), true),
            (WORKLOAD_SLICE_NAME, kind("batch", "Job"), true),
        ] {
            assert_eq!(may_get_other_pods(&workload(annotation), &of), expected, "{of:?}");
        }
    }

    #[test]
    fn other_pods_volumes_devices_and_ports_are_more_than_room() {
        let term = json!([{ "topologyKey": "zone" }]);
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": term });
        let preferred = json!({ "preferredDuringSchedulingIgnoredDuringExecution": term });
        let spread =
            |when: &str| json!({ "topologySpreadConstraints": [{ "whenUnsatisfiable": when }] });
        let ports = |port: Value| json!({ "containers": [{ "name": "c", "ports": [port] }] });
        for (more, spec) in [
            (false, json!({})),
            (true, json!({ "affinity": { "podAntiAffinity": required } })),
            (true, json!({ "affinity": { "podAffinity": required } })),
            (false, json!({ "affinity": { "podAntiAffinity": preferred } })),
            (false, json!({ "affinity": { "nodeAffinity": required } })),
            (true, spread("DoNotSchedule")),
            (false, spread("ScheduleAnyway")),
            (true, json!({ "volumes": [{ "persistentVolumeClaim": { "claimName": "v" } }] })),
            (true, json!({ "volumes": [{ "ephemeral": {} }] })),
            (false, json!({ "volumes": [{ "emptyDir": {} }] })),
            (true, json!({ "resourceClaims": [{ "name": "r" }] })),
            (true, json!({ "nodeName": "n" })),
            (true, json!({ "hostNetwork": true })),
            (true, ports(json!({ "hostPort": 80 }))),
            (false, ports(json!({ "containerPort": 80 }))),
        ] {
            let pod: PodSpec = serde_json::from_value(spec.clone()).expect("a pod");
            assert_eq!(needs_more_than_room(&pod), more, "{spec}");
        }
    }
}
