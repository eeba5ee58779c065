//! The RayCluster of a measurement.

use anyhow::{Context, Result};
use harness::Cluster;
use kube::{
    Api,
    api::{DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::environment::NAME;

/// A RayCluster: its name, and how many workers it has. Only one with a queue is dispatched.
pub(super) struct SampleCluster<'a> {
    pub(super) name: &'a str,
    pub(super) workers: usize,
    pub(super) is_queued: bool,
}

impl SampleCluster<'_> {
    pub(super) async fn create(&self, cluster: &Cluster) -> Result<()> {
        let object: DynamicObject = serde_json::from_value(self.object())?;
        let api = ray_clusters(cluster);
        api.create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("creating RayCluster {}", self.name))?;
        Ok(())
    }

    fn object(&self) -> Value {
        let template = |name: &str| {
            json!({"spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": name, "image": "ray", "resources": {
                        "requests": {"cpu": "10m"}, "limits": {"cpu": "10m"},
                    },
                }],
            }})
        };
        let labels =
            if self.is_queued { json!({"kueue.x-k8s.io/queue-name": NAME}) } else { json!({}) };
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {
                "headGroupSpec": {"rayStartParams": {}, "template": template("head")},
                "workerGroupSpecs": [{
                    "groupName": "workers", "replicas": self.workers, "minReplicas": 0,
                    "maxReplicas": 10_000, "rayStartParams": {}, "template": template("worker"),
                }],
            },
        })
    }
}

pub(super) fn ray_clusters(cluster: &Cluster) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("ray.io", "v1", "RayCluster");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "rayclusters");
    Api::namespaced_with(cluster.client(), NAME, &resource)
}

/// Whether a RayCluster is ready by its status.
pub(super) fn is_ready(cluster: &DynamicObject) -> bool {
    cluster.data.pointer("/status/state").is_some_and(|state| state == "ready")
}
