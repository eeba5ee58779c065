//! RayJobs that are dispatched to the worker.

use anyhow::{Context, Result, ensure};
use e2e::installation::TIMEOUT;
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

/// How the head of a job that runs may fail.
const FAULTS: [HeadFault; 5] =
    [HeadFault::Html, HeadFault::Hang, HeadFault::Endless, HeadFault::Error, HeadFault::Cut];

/// Until the status of a RayJob says that its head does not say how the job is, or that it does.
async fn until_head_fails(fixture: &OperatorFixture, name: &str, fails: bool) -> Result<()> {
    let holds = |job: &DynamicObject| {
        job.data.pointer("/status/jobStatusCheckFailureStartTime").is_some() == fails
    };
    let (api, what) = (fixture.api(&fixture.worker, "RayJob"), format!("has a bad head: {fails}"));
    fixture.worker.until(&api, name, &what, 2 * TIMEOUT, holds).await?;
    Ok(())
}

/// A head that refuses a job is asked again, and the job runs once.
#[tokio::test]
async fn a_ray_job_waits_for_a_head_that_refuses_it() -> Result<()> {
    let fixture = OperatorFixture::new("refused_job").await?;
    let (heads, namespace) = (fixture.heads(), fixture.space.namespace());
    heads.set_fault(namespace, HeadFault::RefusesJobs);
    fixture.submit(&ray_job("train")).await?;
    until_head_fails(&fixture, "train", true).await?;
    ensure!(submitted(&fixture, "train").is_empty(), "it was refused");
    heads.set_fault(namespace, HeadFault::None);
    fixture
        .until_status(&fixture.worker, ("RayJob", "train"), "/status/jobStatus", "PENDING")
        .await?;
    heads.set_status_of(namespace, "SUCCEEDED");
    fixture
        .until_status(&fixture.hub, ("RayJob", "train"), "/status/jobDeploymentStatus", "Complete")
        .await?;
    let submitted = submitted(&fixture, "train");
    ensure!(submitted.len() == 1, "submitted once: {submitted:?}");
    fixture.until_nothing_left().await
}

/// Heads that hang delay no RayJob of another head.
#[tokio::test]
async fn a_ray_job_ends_beside_one_with_a_head_that_hangs() -> Result<()> {
    let (hung, well) = (OperatorFixture::new("hung").await?, OperatorFixture::new("well").await?);
    hung.heads().set_fault(hung.space.namespace(), HeadFault::Hang);
    hung.submit(&ray_job("train")).await?;
    until_head_fails(&hung, "train", true).await?;
    well.submit(&ray_job("train")).await?;
    well.until_status(&well.worker, ("RayJob", "train"), "/status/jobStatus", "PENDING").await?;
    well.heads().set_status_of(well.space.namespace(), "SUCCEEDED");
    well.until_status(&well.hub, ("RayJob", "train"), "/status/jobDeploymentStatus", "Complete")
        .await?;
    let running = hung.api(&hung.worker, "RayJob").get("train").await?;
    let state = running.data.pointer("/status/jobDeploymentStatus");
    ensure!(state == Some(&json!("Running")), "the other one waits for its head: {state:?}");
    hung.heads().set_fault(hung.space.namespace(), HeadFault::None);
    for fixture in [&hung, &well] {
        fixture.delete("RayJob", "train").await?;
        fixture.until_nothing_left().await?;
    }
    Ok(())
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
    for fault in FAULTS {
        heads.set_fault(fixture.space.namespace(), fault);
        until_head_fails(&fixture, "train", true).await.with_context(|| format!("{fault:?}"))?;
        heads.set_fault(fixture.space.namespace(), HeadFault::None);
        until_head_fails(&fixture, "train", false).await.with_context(|| format!("{fault:?}"))?;
    }
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
    let timeout = 2 * TIMEOUT;
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
