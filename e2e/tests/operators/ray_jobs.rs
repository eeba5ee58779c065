//! RayJobs that are dispatched to the worker.

use anyhow::{Context, Result, ensure};
use harness::HeadFault;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::{OperatorFixture, cluster_spec};

pub(crate) fn ray_job(name: &str) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {
            "submissionMode": "HTTPMode", "entrypoint": "python main.py",
            "shutdownAfterJobFinishes": true, "rayClusterSpec": cluster_spec(1),
        },
    })
}

/// The ids of jobs that were submitted for a RayJob. Tests share the server of the heads, and may give their jobs one name.
pub(crate) fn submitted(fixture: &OperatorFixture, name: &str) -> Vec<String> {
    let (prefix, namespace) = (format!("{name}-"), fixture.space.namespace());
    let all = fixture.heads().submissions().into_iter();
    let here = all.filter(|it| it.namespace() == namespace);
    here.map(|it| it.id).filter(|id| id.starts_with(&prefix)).collect()
}

/// A RayJob is submitted once, although its heads fail in every way and the agent is killed, and its end is on the manager's object.
#[tokio::test]
async fn a_ray_job_runs_once_over_bad_heads_and_a_killed_agent() -> Result<()> {
    let fixture = OperatorFixture::new("ray_job").await?;
    let heads = fixture.heads();
    fixture.submit(&ray_job("train")).await?;
    fixture
        .until_status(&fixture.worker, ("RayJob", "train"), "/status/jobStatus", "PENDING")
        .await?;
    fixture.until_listed(2).await?;
    heads.set_fault(fixture.space.namespace(), HeadFault::Html);
    fixture.restart_agent().await?;
    let failing =
        |job: &DynamicObject| job.data.pointer("/status/jobStatusCheckFailureStartTime").is_some();
    let api = fixture.api(&fixture.worker, "RayJob");
    let timeout = 2 * e2e::installation::TIMEOUT;
    fixture.worker.until(&api, "train", "has a head that says nothing", timeout, failing).await?;
    heads.set_fault(fixture.space.namespace(), HeadFault::None);
    heads.set_status_of(fixture.space.namespace(), "SUCCEEDED");
    fixture
        .until_status(&fixture.hub, ("RayJob", "train"), "/status/jobDeploymentStatus", "Complete")
        .await?;
    let submitted = submitted(&fixture, "train");
    ensure!(submitted.len() == 1, "submitted once: {submitted:?}");
    fixture.until_nothing_left().await
}

/// Workers that the autoscaler of a dispatched RayJob adds have no quota, and do not start. The worker has no webhook that gates them.
#[tokio::test]
async fn workers_of_an_autoscaler_wait_for_quota() -> Result<()> {
    let fixture = OperatorFixture::new("autoscaled_job").await?;
    let mut job = ray_job("train");
    job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/elastic-job": "true"});
    let spec = &mut job["spec"]["rayClusterSpec"];
    spec["enableInTreeAutoscaling"] = json!(true);
    // The queue has quota of cores only.
    spec["autoscalerOptions"] = json!({"resources": {"requests": {"cpu": "1"}}});
    fixture.submit(&job).await?;
    let before = fixture.until_running("worker", 1).await?;
    let named = |job: &DynamicObject| job.data["status"]["rayClusterName"].is_string();
    let jobs = fixture.api(&fixture.worker, "RayJob");
    let timeout = 2 * e2e::installation::TIMEOUT;
    let job = fixture.worker.until(&jobs, "train", "names its cluster", timeout, named).await?;
    let cluster = job.data["status"]["rayClusterName"].as_str().context("a name")?;

    // As its autoscaler does, which is part of an image that no test runs.
    let replicas = json!([
        {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3},
    ]);
    let patch = Patch::Json::<()>(serde_json::from_value(replicas)?);
    let clusters = fixture.api(&fixture.worker, "RayCluster");
    clusters.patch(cluster, &PatchParams::default(), &patch).await?;
    let waits = |pod: &Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|it| it.reason.as_deref() == Some("SchedulingGated"))
    };
    let workers = "ray.io/node-type=worker";
    let two_wait =
        |pods: &[Pod]| pods.len() == 3 && pods.iter().filter(|pod| waits(pod)).count() == 2;
    let pods = fixture.worker.api(fixture.space.namespace());
    let all =
        fixture.worker.until_all(&pods, workers, "two workers wait", timeout, two_wait).await?;
    let running: Vec<&Pod> = all.iter().filter(|pod| !waits(pod)).collect();
    ensure!(running.len() == 1 && running[0].metadata.uid == before[0].metadata.uid, "it runs on");

    fixture.delete("RayJob", "train").await?;
    fixture.until_nothing_left().await
}
