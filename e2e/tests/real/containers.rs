//! What containers do reaches the manager: ends, exit codes, memory limits, deletions; and the containers run once.

use anyhow::{Context, Result, ensure};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::api::{DeleteParams, LogParams};
use kube::{Api, ResourceExt};
use serde_json::json;
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
    job["spec"]["podFailurePolicy"] = fail_with(42);
    fixture.submit(&job).await?;
    let end = fixture.until_ended("fails", "Failed").await?;
    let message = end.message.unwrap_or_default();
    ensure!(message.contains("failed with exit code 42"), "{message}");
    let (_, worker) = fixture.until_placed("fails").await?;
    ensure!(fixture.diary(worker)?.pods("started")?.len() == 1);
    fixture.until_no_pod_is_left().await
}

#[tokio::test]
#[ignore = "make test-real"]
async fn a_container_above_its_memory_limit_is_killed() -> Result<()> {
    let fixture = RealFixture::open("real_oom").await?;
    let mut job = fixture.job("eats", 1, "exec dd if=/dev/zero of=/dev/null bs=200M count=2");
    job["spec"]["podFailurePolicy"] = fail_with(137);
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] =
        json!({"memory": "32Mi"});
    fixture.submit(&job).await?;
    let (_, worker) = fixture.until_placed("eats").await?;
    let pods: Api<Pod> = worker.api(fixture.namespace());
    let killed = |all: &[Pod]| {
        let mut ended = all.iter().filter_map(|pod| terminated(pod)?.reason.as_deref());
        ended.any(|reason| reason == "OOMKilled")
    };
    worker.until_all(&pods, "", "one is OOMKilled", 2 * TIMEOUT, killed).await?;
    let end = fixture.until_ended("eats", "Failed").await?;
    let message = end.message.unwrap_or_default();
    ensure!(message.contains("failed with exit code 137"), "{message}");
    Ok(())
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
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {
                    "kueue.x-k8s.io/queue-name": "queue", "kueue.x-k8s.io/pod-group-name": "team",
                },
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
            },
            "spec": fixture.pod_spec("note started; sleep 2; note ended"),
        });
        fixture.submit(&pod).await?;
    }
    let (_, worker) = fixture.until_placed("a").await?;
    let pods: Api<Pod> = fixture.hub.api(fixture.namespace());
    let succeeded = |all: &[Pod]| {
        let phases = all.iter().filter_map(|pod| pod.status.as_ref()?.phase.as_deref());
        phases.filter(|phase| *phase == "Succeeded").count() == 2
    };
    fixture.hub.until_all(&pods, "", "both succeeded", 2 * TIMEOUT, succeeded).await?;
    fixture.until_no_pod_is_left().await?;
    let diary = fixture.diary(worker)?;
    ensure!(diary.pods("started")?.len() == 2 && diary.pods("ended")?.len() == 2, "{diary:?}");
    fixture.ensure_only_on(worker)
}

#[tokio::test]
#[ignore = "make test-real"]
async fn single_gated_pods_run_once_and_their_ends_reach_the_manager() -> Result<()> {
    let fixture = RealFixture::open("real_pod").await?;
    for (name, script) in [("good", "note started; note ended"), ("bad", "note failed; exit 7")] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": fixture.pod_spec(script),
        });
        fixture.submit(&pod).await?;
    }
    let pods: Api<Pod> = fixture.hub.api(fixture.namespace());
    for (name, phase, code) in [("good", "Succeeded", 0), ("bad", "Failed", 7)] {
        let ended = |pod: &Pod| {
            let is_at = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            is_at == Some(phase) && terminated(pod).is_some_and(|end| end.exit_code == code)
        };
        let what = format!("is {phase} with exit code {code}");
        fixture.hub.until(&pods, name, &what, 2 * TIMEOUT, ended).await?;
    }
    fixture.until_no_pod_is_left().await?;
    let diary = fixture.whole_diary()?;
    for (word, pod) in [("started", "good"), ("ended", "good"), ("failed", "bad")] {
        ensure!(diary.only(word)?.pod == pod, "{diary:?}");
    }
    Ok(())
}

/// How the first container of a pod has ended.
fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    containers.first()?.state.as_ref()?.terminated.as_ref()
}

/// The Job fails, and says so, when the container ends with this code.
fn fail_with(code: i32) -> serde_json::Value {
    let codes = json!({"containerName": "main", "operator": "In", "values": [code]});
    json!({"rules": [{"action": "FailJob", "onExitCodes": codes}]})
}
