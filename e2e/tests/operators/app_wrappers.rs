//! AppWrappers that are dispatched to the worker.

use anyhow::Result;
use serde_json::json;

use crate::fixture::{OperatorFixture, cluster_spec};

/// A RayCluster in an AppWrapper: the agent makes the component, and operates it as well.
#[tokio::test]
async fn a_wrapped_ray_cluster_runs_and_goes_with_its_app_wrapper() -> Result<()> {
    let fixture = OperatorFixture::new("app_wrapper").await?;
    fixture
        .submit(&json!({
            "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
            "metadata": {"name": "w", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": {"components": [{"template": {
                "apiVersion": "ray.io/v1", "kind": "RayCluster",
                "metadata": {"name": "inner", "namespace": fixture.space.namespace()},
                "spec": cluster_spec(1),
            }}]},
        }))
        .await?;
    fixture.until_running("head", 1).await?;
    fixture.until_running("worker", 1).await?;
    fixture.until_status(&fixture.hub, ("AppWrapper", "w"), "/status/phase", "Running").await?;
    fixture.delete("AppWrapper", "w").await?;
    fixture.until_nothing_left().await
}
