//! Containers of jobs that are evicted: by a higher priority, and because their image cannot be pulled.

use anyhow::{Result, ensure};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::fixture::RealFixture;

/// Ends after a while when it is asked to, and by itself when the file `go` is there.
const STOPS_SLOWLY: &str = "trap 'note stopping; sleep 4; note stopped; exit 143' TERM
note started
until [ -e /diaries/go ]; do sleep 1; done
note ended";

#[tokio::test]
#[ignore = "make test-real"]
async fn a_preempted_job_has_its_grace_period_and_runs_later() -> Result<()> {
    let fixture = RealFixture::open("real_grace").await?;
    fixture.set_quota("100m").await?;
    let urgent = format!("{}-urgent", fixture.namespace());
    let class = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": {"name": urgent}, "value": 1000,
    });
    fixture.submit(&class).await?;
    fixture.submit(&fixture.job("victim", 1, STOPS_SLOWLY)).await?;
    let (_, worker) = fixture.until_placed("victim").await?;
    fixture.until_noted(worker, "started", 1).await?;

    let mut job = fixture.job("urgent", 1, "note urgent");
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!(urgent);
    fixture.submit(&job).await?;
    fixture.until_ended("urgent", "Complete").await?;
    fixture.ensure_once("urgent", 1).await?;
    fixture.leave_file("go")?;
    fixture.until_ended("victim", "Complete").await?;
    fixture.until_no_pod_is_left().await?;

    let diary = fixture.whole_diary()?;
    let stopped = diary.only("stopped")?;
    ensure!(diary.only("stopping")?.pod == stopped.pod, "{diary:?}");
    // The quota of the victim is free when its container has ended, not when that was asked for.
    ensure!(diary.only("urgent")?.seconds >= stopped.seconds, "{diary:?}");
    ensure!(diary.pods("started")?.len() == 2, "{diary:?}");
    let ended = diary.only("ended")?;
    ensure!(ended.pod != stopped.pod && ended.seconds >= stopped.seconds, "{diary:?}");
    fixture.ensure_moved("victim", 1).await
}

#[tokio::test]
#[ignore = "make test-real"]
async fn a_job_whose_image_cannot_be_pulled_is_evicted_and_others_run() -> Result<()> {
    let fixture = RealFixture::open("real_image").await?;
    let mut broken = fixture.job("broken", 1, "note started");
    broken["spec"]["template"]["spec"]["containers"][0]["image"] = json!("lab.sluice.dev/none:1");
    fixture.submit(&broken).await?;
    let (_, worker) = fixture.until_placed("broken").await?;
    let pods: Api<Pod> = worker.api(fixture.namespace());
    let waits = |all: &[Pod]| all.iter().any(|pod| waits_for(pod, "ImagePullBackOff"));
    worker.until_all(&pods, "", "one waits for its image", 2 * TIMEOUT, waits).await?;

    fixture.submit(&fixture.job("good", 2, "note started; note ended")).await?;
    fixture.until_ended("good", "Complete").await?;
    fixture.ensure_once("good", 2).await?;

    fixture.until_evicted("broken", "PodsReadyTimeout").await?;
    let jobs: Api<Job> = fixture.hub.api(fixture.namespace());
    jobs.delete("broken", &DeleteParams::background()).await?;
    fixture.until_no_pod_is_left().await?;
    let diary = fixture.whole_diary()?;
    ensure!(diary.pods("started")?.len() == 2 && diary.pods("ended")?.len() == 2, "{diary:?}");
    Ok(())
}

/// Whether a container waits for this reason.
fn waits_for(pod: &Pod, reason: &str) -> bool {
    let containers =
        pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let waiting = containers.filter_map(|one| one.state.as_ref()?.waiting.as_ref());
    waiting.into_iter().any(|waiting| waiting.reason.as_deref() == Some(reason))
}
