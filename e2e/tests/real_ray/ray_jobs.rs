//! A RayJob that the agent of its worker operates: it makes the cluster, submits the job to the head over HTTP or lets a pod
//! submit it, and follows it.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::fixture::{RayFixture, cluster_spec, in_queue};
use crate::head::JOB;

#[tokio::test]
#[ignore = "make test-real"]
async fn a_ray_job_of_the_agent_succeeds() -> Result<()> {
    succeeds("ray_job", "HTTPMode").await
}

#[tokio::test]
#[ignore = "make test-real"]
async fn a_ray_job_that_a_pod_of_the_agent_submits_succeeds() -> Result<()> {
    succeeds("ray_by_pod", "K8sJobMode").await
}

async fn succeeds(test: &str, submission: &str) -> Result<()> {
    let fixture = RayFixture::open(test).await?;
    let job = json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": in_queue("train"),
        "spec": {
            "submissionMode": submission, "entrypoint": JOB, "shutdownAfterJobFinishes": true,
            "rayClusterSpec": cluster_spec(),
        },
    });
    fixture.submit(&job).await?;

    fixture.until_placed("train").await?;
    let ended =
        fixture.until_status(("RayJob", "train"), "jobDeploymentStatus", "Complete").await?;
    let status = ended.data.get("status").context("a status")?;
    ensure!(status["jobStatus"] == "SUCCEEDED", "{status}");
    if submission == "HTTPMode" {
        // The cluster goes with the end of the job. The pod that submitted goes with the RayJob.
        fixture.until_no_pod_is_left().await?;
    }
    fixture.delete("RayJob", "train").await?;
    fixture.until_no_pod_is_left().await
}
