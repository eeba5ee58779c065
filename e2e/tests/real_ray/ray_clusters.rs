//! A RayCluster that the agent of its worker operates.

use anyhow::Result;
use kube::ResourceExt;
use serde_json::json;

use crate::fixture::{RayFixture, cluster_spec, in_queue};
use crate::head::RayHead;

#[tokio::test]
#[ignore = "make test-real"]
async fn a_ray_cluster_of_the_agent_runs_a_job() -> Result<()> {
    let fixture = RayFixture::open("ray_cluster").await?;
    let cluster = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": in_queue("c"),
        "spec": cluster_spec(),
    });
    fixture.submit(&cluster).await?;

    let worker = fixture.until_placed("c").await?;
    let head = fixture.until_ready(worker, "ray.io/node-type=head", 1).await?;
    // Its first container waits for the head by name, then Ray joins it.
    fixture.until_ready(worker, "ray.io/node-type=worker", 1).await?;
    fixture.until_status(("RayCluster", "c"), "state", "ready").await?;
    let (namespace, pod) = (fixture.namespace(), &*head.name_any());
    let ray = RayHead { worker, namespace, pod };
    ray.ensure_version().await?;
    ray.ensure_job_succeeds("cluster").await?;

    fixture.delete("RayCluster", "c").await?;
    fixture.until_no_pod_is_left().await
}
