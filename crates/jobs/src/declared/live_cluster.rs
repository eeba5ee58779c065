//! The RayCluster that the operator has made of a RayJob or a RayService: its autoscaler changes the number of workers there, not in
//! the job.

use std::collections::BTreeMap;

use crds::v1beta2::PodSet;
use kube_core::DynamicObject;
use serde_json::Value;

/// Field of a RayCluster with the groups of workers.
const WORKER_GROUPS: &str = "/spec/workerGroupSpecs";

/// The RayCluster of a RayJob or a RayService.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LiveCluster {
    generation: i64,
    /// Pods by pod set.
    pods: BTreeMap<String, i32>,
}

impl LiveCluster {
    /// Reads a RayCluster. `count` counts the pods of a group, as of one of the job; a group that it cannot count keeps its size.
    pub(super) fn of(cluster: &DynamicObject, count: impl Fn(&Value) -> Option<i32>) -> Self {
        let groups = cluster.data.pointer(WORKER_GROUPS).and_then(Value::as_array);
        let group = |group: &Value| {
            let name = group["groupName"].as_str()?.to_lowercase();
            Some((name, count(group)?))
        };
        Self {
            generation: cluster.metadata.generation.unwrap_or_default(),
            pods: groups.into_iter().flatten().filter_map(group).collect(),
        }
    }

    /// Sets the pods of groups of workers to those that the RayCluster asks for.
    pub(super) fn count_pods(&self, sets: &mut [PodSet]) {
        for set in sets {
            if let Some(pods) = self.pods.get(&set.name) {
                set.count = Some(*pods);
            }
        }
    }

    /// As the annotation of the job shows it.
    pub(super) fn generation(&self) -> String {
        self.generation.to_string()
    }
}
