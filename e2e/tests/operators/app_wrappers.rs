//! AppWrappers that are dispatched to the worker.

use anyhow::{Context, Result, ensure};
use e2e::{installation::TIMEOUT, objects::OWN};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    fixture::{OperatorFixture, cluster_spec},
    ray_jobs::{ray_job, submitted},
};

/// Submits the AppWrapper `w` around a component.
async fn submit_around(fixture: &OperatorFixture, component: &Value) -> Result<()> {
    let wrapper = json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "w", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {"components": [{"template": component}]},
    });
    fixture.submit(&wrapper).await
}

fn ray_cluster(fixture: &OperatorFixture, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": name, "namespace": fixture.space.namespace()}, "spec": spec,
    })
}

/// A RayCluster in an AppWrapper: the agent makes the component, and operates it as well.
#[tokio::test]
async fn a_wrapped_ray_cluster_runs_and_goes_with_its_app_wrapper() -> Result<()> {
    let fixture = OperatorFixture::new("app_wrapper").await?;
    submit_around(&fixture, &ray_cluster(&fixture, "inner", &cluster_spec(1))).await?;
    fixture.until_running("head", 1).await?;
    fixture.until_running("worker", 1).await?;
    fixture.until_listed(2).await?;
    fixture.until_status(&fixture.hub, ("AppWrapper", "w"), "/status/phase", "Running").await?;
    fixture.delete("AppWrapper", "w").await?;
    fixture.until_nothing_left().await
}

/// An autoscaler sizes a RayCluster below the number that was admitted, and not beyond it. Its AppWrapper stays as it is.
#[tokio::test]
async fn a_wrapped_ray_cluster_scales_within_what_was_admitted() -> Result<()> {
    let fixture = OperatorFixture::new("wrapped_scaling").await?;
    let mut spec = cluster_spec(2);
    spec["enableInTreeAutoscaling"] = json!(true);
    submit_around(&fixture, &ray_cluster(&fixture, "scaled", &spec)).await?;
    fixture.until_running("worker", 2).await?;
    until_pods_ready(&fixture, 3).await?;
    let clusters = fixture.api(&fixture.worker, "RayCluster");
    let made = clusters.get("scaled").await?;

    // A worker that is given up is replaced, and shows that the number was seen.
    let given_up = scale(&fixture, (5, 1)).await?;
    let pods: Api<Pod> = fixture.worker.api(fixture.space.namespace());
    let is_left = |pod: &Pod| given_up.contains(&pod.name_any());
    let gone = |all: &[Pod]| !all.iter().any(is_left);
    fixture.worker.until_all(&pods, "", "a worker was given up", 2 * TIMEOUT, gone).await?;
    fixture.until_running("worker", 2).await?;
    let seen = clusters.get("scaled").await?;
    let desired = seen.data.pointer("/status/desiredWorkerReplicas");
    ensure!(desired == Some(&json!(2)), "no worker beyond the quota: {desired:?}");

    scale(&fixture, (0, 0)).await?;
    fixture.until_running("worker", 0).await?;
    until_pods_ready(&fixture, 1).await?;
    scale(&fixture, (2, 2)).await?;
    fixture.until_running("worker", 2).await?;
    until_pods_ready(&fixture, 3).await?;
    let now = clusters.get("scaled").await?;
    ensure!(now.metadata.uid == made.metadata.uid, "it was made again");
    let wrapper = fixture.api(&fixture.worker, "AppWrapper").get("w").await?;
    let resets = wrapper.data.pointer("/status/resettingCount").and_then(Value::as_i64);
    ensure!(resets.unwrap_or_default() == 0, "{resets:?}");
    fixture.delete("AppWrapper", "w").await?;
    fixture.until_nothing_left().await
}

/// Does what Ray's autoscaler does: writes the number of workers that it wants, and the names of those that it gives up, which are
/// returned. So many are kept.
async fn scale(fixture: &OperatorFixture, (replicas, kept): (usize, usize)) -> Result<Vec<String>> {
    let pods: Api<Pod> = fixture.worker.api(fixture.space.namespace());
    let workers = ListParams::default().labels("ray.io/node-type=worker");
    let workers = pods.list(&workers).await?.items.into_iter();
    let given_up: Vec<String> = workers.skip(kept).map(|pod| pod.name_any()).collect();
    let group = "/spec/workerGroupSpecs/0";
    let patch: json_patch::Patch = serde_json::from_value(json!([
        {"op": "replace", "path": format!("{group}/replicas"), "value": replicas},
        {"op": "add", "path": format!("{group}/scaleStrategy"), "value": {"workersToDelete": given_up}},
    ]))?;
    let clusters = fixture.api(&fixture.worker, "RayCluster");
    let patch = Patch::Json::<()>(patch);
    let patched = clusters.patch("scaled", &PatchParams::default(), &patch).await;
    patched.with_context(|| format!("scaling to {replicas} workers"))?;
    Ok(given_up)
}

/// Until the AppWrapper is ready on both clusters with so many running pods.
async fn until_pods_ready(fixture: &OperatorFixture, number: usize) -> Result<()> {
    let message = format!("{number} pods running; 0 pods succeeded");
    let ready = |wrapper: &DynamicObject| {
        let conditions = wrapper.data.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().any(|it| {
            it["type"] == "PodsReady" && it["status"] == "True" && it["message"] == message
        })
    };
    for cluster in [&fixture.worker, &fixture.hub] {
        let api = fixture.api(cluster, "AppWrapper");
        cluster.until(&api, "w", &message, 2 * TIMEOUT, ready).await?;
    }
    Ok(())
}

/// A RayJob in an AppWrapper runs once, and the AppWrapper ends with it on both clusters.
#[tokio::test]
async fn a_wrapped_ray_job_ends_its_app_wrapper() -> Result<()> {
    let fixture = OperatorFixture::new("wrapped_job").await?;
    let namespace = fixture.space.namespace();
    let mut job = ray_job("wrapped");
    job["metadata"] = json!({"name": "wrapped", "namespace": namespace});
    submit_around(&fixture, &job).await?;
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
