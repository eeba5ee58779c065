//! The list of a Workload's pods.

use crds::{
    meta::{annotation, label},
    names::{
        JOB_COMPLETION_INDEX, SLUICE_VISIBILITY_GROUP,
        labels::{POD_GROUP_POD_INDEX, POD_SET},
    },
    v1beta2::Workload,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::observed::{ContainerName, ObservedPod, StateOfContainer, name_of};
use crate::api::WORKLOAD_PODS_VERSION;

/// Pods of one Workload. The first one is the head of the job, or has the lowest index.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPodList {
    /// Always `WorkloadPodList`.
    pub kind: &'static str,
    /// Group and version.
    pub api_version: String,
    /// Always empty.
    pub metadata: ObjectMeta,
    /// The worker; empty if the Workload runs on the manager cluster.
    pub cluster: String,
    /// What keeps the list from being complete; empty if it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub incomplete: String,
    /// The pods.
    pub items: Vec<WorkloadPod>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPod {
    /// Its name.
    pub name: String,
    /// The pod set; empty if the pod names none.
    pub pod_set: String,
    /// `Pending`, `Running`, …
    pub phase: String,
    /// Its containers, in the order of its spec, those that start before the others first.
    pub containers: Vec<WorkloadContainer>,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadContainer {
    /// Its name.
    pub name: String,
    /// It is an init container.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub init: bool,
    /// How often it was started again.
    pub restarts: i32,
}

impl WorkloadPodList {
    /// The list of the pods of a Workload.
    #[must_use]
    pub fn of(workload: &Workload, cluster: &str, mut pods: Vec<ObservedPod>) -> Self {
        let sets: Vec<&str> = workload.spec.pod_sets.iter().map(|set| &*set.name).collect();
        pods.sort_by_cached_key(|pod| order(&sets, &pod.metadata));
        Self {
            kind: "WorkloadPodList",
            api_version: format!("{SLUICE_VISIBILITY_GROUP}/{WORKLOAD_PODS_VERSION}"),
            metadata: ObjectMeta::default(),
            cluster: cluster.to_owned(),
            incomplete: String::new(),
            items: pods.into_iter().map(WorkloadPod::of).collect(),
        }
    }

    /// This list, with what keeps it from being complete.
    #[must_use]
    pub fn incomplete(self, why: Option<String>) -> Self {
        Self { incomplete: why.unwrap_or_default(), ..self }
    }
}

impl WorkloadPod {
    fn of(pod: ObservedPod) -> Self {
        let ObservedPod { metadata, spec, status } = pod;
        let first = containers(spec.init_containers, &status.init_container_statuses, true);
        let others = containers(spec.containers, &status.container_statuses, false);
        Self {
            name: name_of(&metadata).to_owned(),
            pod_set: label(&metadata, POD_SET).unwrap_or_default().to_owned(),
            phase: status.phase,
            containers: first.chain(others).collect(),
        }
    }
}

fn containers(
    all: Vec<ContainerName>,
    states: &[StateOfContainer],
    init: bool,
) -> impl Iterator<Item = WorkloadContainer> {
    all.into_iter().map(move |ContainerName { name }| {
        let state = states.iter().find(|state| state.name == name);
        let restarts = state.map(|state| state.restart_count).unwrap_or_default();
        WorkloadContainer { name, init, restarts }
    })
}

/// Pod sets have the order of the Workload, in which heads, launchers and drivers come first; then indexes and the numbers in names count.
fn order(sets: &[&str], pod: &ObjectMeta) -> (usize, u64, String, u64, String) {
    let set = label(pod, POD_SET).and_then(|name| sets.iter().position(|set| *set == name));
    let index = annotation(pod, JOB_COMPLETION_INDEX)
        .or_else(|| label(pod, JOB_COMPLETION_INDEX))
        .or_else(|| label(pod, POD_GROUP_POD_INDEX));
    let index = index.and_then(|text| text.parse().ok());
    let name = name_of(pod);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name.get(stem.len()..).and_then(|digits| digits.parse().ok());
    (
        set.unwrap_or(usize::MAX),
        index.unwrap_or(u64::MAX),
        stem.to_owned(),
        number.unwrap_or_default(),
        name.to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn workload() -> Workload {
        let set = |name: &str| json!({"name": name, "template": {}});
        let spec = json!({"podSets": [set("head"), set("workers")]});
        serde_json::from_value(json!({"metadata": {"name": "w"}, "spec": spec}))
            .expect("a Workload")
    }

    fn pod(name: &str, set: &str, index: Option<&str>) -> ObservedPod {
        let index = index.map(|index| json!({"batch.kubernetes.io/job-completion-index": index}));
        serde_json::from_value(json!({"metadata": {
            "name": name, "labels": {"kueue.x-k8s.io/podset": set},
            "annotations": index.unwrap_or_else(|| json!({})),
        }}))
        .expect("a pod")
    }

    #[test]
    fn the_head_comes_first_and_numbers_are_not_texts() {
        let pods = vec![
            pod("x-10", "workers", None),
            pod("x-9", "workers", None),
            pod("b", "other", None),
            pod("z", "head", None),
            pod("i-a", "workers", Some("10")),
            pod("i-b", "workers", Some("2")),
        ];
        let list = WorkloadPodList::of(&workload(), "east", pods);
        let names: Vec<&str> = list.items.iter().map(|pod| &*pod.name).collect();
        assert_eq!(names, ["z", "i-b", "i-a", "x-9", "x-10", "b"]);
    }

    #[test]
    fn a_list_has_phases_containers_and_restarts() {
        let pod: Value = json!({
            "metadata": {"name": "a", "labels": {"kueue.x-k8s.io/podset": "head"}},
            "spec": {
                "containers": [{"name": "main", "image": "i"}],
                "initContainers": [{"name": "load"}],
            },
            "status": {
                "phase": "Running", "containerStatuses": [{"name": "main", "restartCount": 2}],
            },
        });
        let pod = serde_json::from_value(pod).expect("a pod");
        let list = WorkloadPodList::of(&workload(), "", vec![pod]);
        let expected = json!({
            "kind": "WorkloadPodList", "apiVersion": "visibility.sluice.dev/v1alpha1",
            "metadata": {}, "cluster": "",
            "items": [{
                "name": "a", "podSet": "head", "phase": "Running",
                "containers": [
                    {"name": "load", "init": true, "restarts": 0}, {"name": "main", "restarts": 2},
                ],
            }],
        });
        assert_eq!(serde_json::to_value(list).expect("JSON"), expected);
    }
}
