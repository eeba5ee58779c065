//! RayClusters that are dispatched to the worker.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::fixture::{OperatorFixture, cluster_spec};

/// The pods run on the worker with the labels of the official operator, and the status of the manager's object says so.
#[tokio::test]
async fn a_ray_cluster_runs_on_a_worker_without_an_operator() -> Result<()> {
    let fixture = OperatorFixture::new("ray_cluster").await?;
    fixture
        .submit(&json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "c", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": cluster_spec(2),
        }))
        .await?;
    fixture.until_running("head", 1).await?;
    let workers = fixture.until_running("worker", 2).await?;
    ensure!(workers.iter().all(|pod| pod.labels()["ray.io/group"] == "workers"));
    fixture.until_status(&fixture.hub, ("RayCluster", "c"), "/status/state", "ready").await?;
    let services: Api<Service> = fixture.worker.api(fixture.space.namespace());
    ensure!(services.get_opt("c-head-svc").await?.is_some(), "the head has a Service");

    fixture.delete("RayCluster", "c").await?;
    fixture.until_nothing_left().await
}

/// An agent that is killed leaves no second head: its successor reads what is there.
#[tokio::test]
async fn a_killed_agent_leaves_no_second_head() -> Result<()> {
    let fixture = OperatorFixture::new("killed_agent").await?;
    fixture
        .submit(&json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "c", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": cluster_spec(1),
        }))
        .await?;
    let before = fixture.until_running("head", 1).await?;
    fixture.restart_agent().await?;
    fixture.until_status(&fixture.hub, ("RayCluster", "c"), "/status/state", "ready").await?;
    let after = fixture.until_running("head", 1).await?;
    let names = |pods: &[k8s_openapi::api::core::v1::Pod]| -> Vec<String> {
        pods.iter().map(ResourceExt::name_any).collect()
    };
    ensure!(names(&before) == names(&after), "the same head");
    fixture.delete("RayCluster", "c").await?;
    fixture.until_nothing_left().await
}
