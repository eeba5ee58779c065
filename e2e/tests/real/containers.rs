//! What containers do reaches the manager: ends, exit codes, deletions; and the containers run once.

use anyhow::{Context, Result, ensure};
use e2e::installation::TIMEOUT;
use e2e::objects;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, LogParams};
use kube::{Api, ResourceExt};
use tokio::time::timeout;

use crate::fixture::RealFixture;

#[tokio::test]
#[ignore = "make test-real"]
async fn a_job_runs_once_in_containers_of_one_worker_and_its_log_can_be_read() -> Result<()> {
    let fixture = RealFixture::open("real_job").await?;
    let script = "note started; until [ -e /tmp/go ]; do sleep 1; done; echo done here; note ended";
    fixture.submit(&fixture.job("train", 2, script)).await?;
    let (_, worker) = fixture.until_placed("train").await?;
    let running = fixture.until_running(worker, 2).await?;

    // Logs and exec take the way of the API server to the kubelet.
    let pods: Api<Pod> = worker.api(fixture.namespace());
    let follow = LogParams { follow: true, ..LogParams::default() };
    let first = running.first().context("two pods run")?.name_any();
    let log = pods.logs(&first, &follow);
    let go = async {
        for pod in &running {
            let name = pod.name_any();
            let touch = ["exec", "-n", fixture.namespace(), &name, "--", "touch", "/tmp/go"];
            worker.kubectl(&touch).await?;
        }
        anyhow::Ok(())
    };
    let (log, went) = timeout(TIMEOUT, async { tokio::join!(log, go) }).await?;
    went?;
    ensure!(log?.contains("done here"), "the log has no line of the container");

    fixture.until_ended("train", "Complete").await?;
    fixture.until_no_pod_is_left().await?;
    fixture.ensure_once("train", 2).await?;
    let diary = fixture.diary(worker)?;
    let names = running.iter().map(ResourceExt::name_any).collect();
    ensure!(diary.pods("started")? == names, "{diary:?}, not {names:?}");
    ensure!(diary.pods("ended")? == names, "{diary:?}, not {names:?}");
    fixture.ensure_only_on(worker)
}

#[tokio::test]
#[ignore = "make test-real"]
async fn the_exit_code_of_a_container_reaches_the_manager() -> Result<()> {
    let fixture = RealFixture::open("real_exit").await?;
    let mut job = fixture.job("fails", 1, "note started; exit 42");
    job["spec"]["podFailurePolicy"] = objects::fail_job_on(42);
    fixture.submit(&job).await?;
    let end = fixture.until_ended("fails", "Failed").await?;
    let message = end.message.unwrap_or_default();
    ensure!(message.contains("failed with exit code 42"), "{message}");
    let (_, worker) = fixture.until_placed("fails").await?;
    ensure!(fixture.diary(worker)?.pods("started")?.len() == 1);
    fixture.until_no_pod_is_left().await?;
    // One run, and no pod of it succeeded.
    fixture.ensure_once("fails", 0).await.map(drop)
}

#[tokio::test]
#[ignore = "make test-real"]
async fn containers_of_a_deleted_job_are_stopped_within_their_grace_period() -> Result<()> {
    let fixture = RealFixture::open("real_deleted").await?;
    let script = "trap 'note stopped; exit 0' TERM; note started; while :; do sleep 1; done";
    fixture.submit(&fixture.job("endless", 1, script)).await?;
    let (_, worker) = fixture.until_placed("endless").await?;
    fixture.until_running(worker, 1).await?;
    fixture.until_noted(worker, "started", 1).await?;

    let jobs: Api<Job> = fixture.hub.api(fixture.namespace());
    jobs.delete("endless", &DeleteParams::background()).await?;
    fixture.until_no_pod_is_left().await?;
    let diary = fixture.diary(worker)?;
    ensure!(diary.pods("stopped")?.len() == 1, "no container saw SIGTERM: {diary:?}");
    fixture.ensure_only_on(worker)
}

#[tokio::test]
#[ignore = "make test-real"]
async fn a_group_of_gated_pods_runs_in_containers_of_one_worker() -> Result<()> {
    let fixture = RealFixture::open("real_group").await?;
    for name in ["a", "b"] {
        let pod = fixture.pod(name, "note started; sleep 2; note ended");
        fixture.submit(&objects::in_group(pod, "team", 2)).await?;
    }
    let (_, worker) = fixture.until_placed("a").await?;
    let mut seen = Vec::new();
    for name in ["a", "b"] {
        fixture.until_phase(name, "Succeeded").await?;
        seen.push(fixture.ensure_pod_once(name, 1).await?);
    }
    fixture.until_no_pod_is_left().await?;
    fixture.diary(worker)?.ensure_as_seen(worker.name(), &seen)?;
    fixture.ensure_only_on(worker)
}

#[tokio::test]
#[ignore = "make test-real"]
async fn single_gated_pods_run_once_in_containers() -> Result<()> {
    let fixture = RealFixture::open("real_pod").await?;
    for (name, script) in [("good", "note started; note ended"), ("bad", "note failed; exit 7")] {
        fixture.submit(&fixture.pod(name, script)).await?;
    }
    for (name, phase, work) in [("good", "Succeeded", 1), ("bad", "Failed", 0)] {
        fixture.until_phase(name, phase).await?;
        fixture.ensure_pod_once(name, work).await?;
    }
    fixture.until_no_pod_is_left().await?;
    let diary = fixture.whole_diary()?;
    for (word, pod) in [("started", "good"), ("ended", "good"), ("failed", "bad")] {
        ensure!(diary.only(word)?.pod == pod, "{diary:?}");
    }
    Ok(())
}
