//! AppWrappers that are dispatched to the worker.

use anyhow::{Context, Result, ensure};
use e2e::{installation::TIMEOUT, objects::OWN};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    fixture::{OperatorFixture, cluster_spec},
    ray_jobs::{ray_job, submitted},
};

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
    fixture.until_listed(2).await?;
    fixture.until_status(&fixture.hub, ("AppWrapper", "w"), "/status/phase", "Running").await?;
    fixture.delete("AppWrapper", "w").await?;
    fixture.until_nothing_left().await
}

/// A RayJob in an AppWrapper runs once, and the AppWrapper ends with it on both clusters.
#[tokio::test]
async fn a_wrapped_ray_job_ends_its_app_wrapper() -> Result<()> {
    let fixture = OperatorFixture::new("wrapped_job").await?;
    let namespace = fixture.space.namespace();
    let mut job = ray_job("wrapped");
    job["metadata"] = json!({"name": "wrapped", "namespace": namespace});
    fixture
        .submit(&json!({
            "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
            "metadata": {"name": "w", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": {"components": [{"template": job}]},
        }))
        .await?;
    fixture.until_running("worker", 1).await?;
    fixture.heads().set_status_of(namespace, "SUCCEEDED");
    fixture.until_status(&fixture.hub, ("AppWrapper", "w"), "/status/phase", "Succeeded").await?;
    let submitted = submitted(&fixture, "wrapped");
    ensure!(submitted.len() == 1, "submitted once: {submitted:?}");
    fixture.until_nothing_left().await
}

/// Pods with GPUs leave a node that Autopilot marks, and no retry is used.
#[tokio::test]
async fn an_app_wrapper_leaves_a_node_that_autopilot_marks() -> Result<()> {
    let fixture = OperatorFixture::new("autopilot").await?;
    let namespace = fixture.space.namespace();
    let nodes: Api<Node> = fixture.worker.cluster_api();
    let own = ListParams::default().labels(&format!("{OWN}={namespace}"));
    let node = nodes.list(&own).await?.items.first().context("a node")?.name_any();
    let gpu = json!({"nvidia.com/gpu": "1"});
    let status = Patch::Merge(json!({"status": {"capacity": gpu, "allocatable": gpu}}));
    nodes.patch_status(&node, &PatchParams::default(), &status).await?;
    let wrapper: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "w"},
        "spec": {"components": [{"template": {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace},
            "spec": {
                "nodeSelector": {OWN: namespace},
                "tolerations": [{"key": OWN, "value": namespace, "effect": "NoSchedule"}],
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }],
            },
        }}]},
    }))?;
    let api = fixture.api(&fixture.worker, "AppWrapper");
    api.create(&PostParams::default(), &wrapper).await?;
    let condition = |object: &DynamicObject, kind: &str, reason: &str| {
        let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == kind && it["reason"] == reason)
    };
    let ready = |object: &DynamicObject| condition(object, "PodsReady", "SufficientPodsReady");
    fixture.worker.until(&api, "w", "has its pod", 2 * TIMEOUT, ready).await?;
    let marked =
        Patch::Merge(json!({"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": "EVICT"}}}));
    nodes.patch(&node, &PatchParams::default(), &marked).await?;
    let leaves = |object: &DynamicObject| {
        condition(object, "Unhealthy", "AutopilotNoExecute")
            && object.data.pointer("/status/phase").is_some_and(|phase| phase == "Resetting")
    };
    let left = fixture.worker.until(&api, "w", "leaves the node", TIMEOUT, leaves).await?;
    let retries = left.data.pointer("/status/resettingCount").and_then(Value::as_i64);
    ensure!(retries.unwrap_or_default() == 0, "no retry is used: {retries:?}");
    api.delete("w", &DeleteParams::background()).await?;
    fixture.until_nothing_left().await
}
