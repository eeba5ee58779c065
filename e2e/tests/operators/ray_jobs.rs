//! RayJobs that are dispatched to the worker.

use anyhow::{Result, ensure};
use harness::HeadFault;
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

/// The ids of jobs that were submitted for a RayJob.
fn submitted(fixture: &OperatorFixture, name: &str) -> Vec<String> {
    let prefix = format!("{name}-");
    let ids = fixture.heads().submissions().into_iter().map(|it| it.id);
    ids.filter(|id| id.starts_with(&prefix)).collect()
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
    heads.set_fault(fixture.space.namespace(), HeadFault::Html);
    fixture.restart_agent().await?;
    let failing = |job: &kube::api::DynamicObject| {
        job.data.pointer("/status/jobStatusCheckFailureStartTime").is_some()
    };
    let api = fixture.api(&fixture.worker, "RayJob");
    let timeout = 2 * e2e::installation::TIMEOUT;
    fixture.worker.until(&api, "train", "has a head that says nothing", timeout, failing).await?;
    heads.set_fault(fixture.space.namespace(), HeadFault::None);
    heads.set_status("SUCCEEDED");
    fixture
        .until_status(&fixture.hub, ("RayJob", "train"), "/status/jobDeploymentStatus", "Complete")
        .await?;
    let submitted = submitted(&fixture, "train");
    ensure!(submitted.len() == 1, "submitted once: {submitted:?}");
    heads.set_status("PENDING");
    fixture.until_nothing_left().await
}
