//! Containers of jobs that are evicted: by a higher priority, and because their pods cannot start.

use anyhow::{Context, Result, ensure};
use crds::meta;
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
    // The kubelet alternates between the two; the first one stays.
    let reasons = ["ErrImagePull", "ImagePullBackOff"];
    let [reason, message] = fixture.until_failing("broken", &reasons).await?;
    ensure!(message.starts_with(&format!("{}: pod broken-", worker.name())), "{message}");
    ensure!(message.contains("lab.sluice.dev/none:1"), "{message}");
    let explained = fixture.explained("job/broken").await?;
    ensure!(explained.contains(&format!("{reason}: {message}")), "{explained}");

    fixture.submit(&fixture.job("good", 2, "note started; note ended")).await?;
    fixture.until_ended("good", "Complete").await?;
    fixture.ensure_once("good", 2).await?;

    let evicted = fixture.until_evicted("broken", "PodsReadyTimeout").await?;
    let last = meta::find(&evicted.status.conditions, "sluice.dev/PodsFailing");
    let last = last.context("what failed stays readable")?;
    ensure!((&*last.status, &last.message) == ("False", &message), "{last:?}");
    let jobs: Api<Job> = fixture.hub.api(fixture.namespace());
    jobs.delete("broken", &DeleteParams::background()).await?;
    fixture.until_no_pod_is_left().await?;
    let diary = fixture.whole_diary()?;
    ensure!(diary.pods("started")?.len() == 2 && diary.pods("ended")?.len() == 2, "{diary:?}");
    Ok(())
}

#[tokio::test]
#[ignore = "make test-real"]
async fn pods_that_cannot_start_for_other_reasons_are_explained_on_the_manager() -> Result<()> {
    let fixture = RealFixture::open("real_start").await?;
    let mut unconfigured = fixture.job("unconfigured", 1, "note started");
    unconfigured["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": "missing"}}]);
    // No node is assigned to pods with such an affinity, so kube-scheduler finds that none takes it.
    let mut lonely = fixture.job("lonely", 1, "note started");
    let beside = json!({
        "labelSelector": {"matchLabels": {"app": "missing"}},
        "topologyKey": "kubernetes.io/hostname",
    });
    lonely["spec"]["template"]["spec"]["affinity"] =
        json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}});
    for job in [&unconfigured, &lonely] {
        fixture.submit(job).await?;
    }
    for (job, reason, words) in [
        ("unconfigured", "CreateContainerConfigError", "configmap \"missing\" not found"),
        ("lonely", "Unschedulable", "pod affinity"),
    ] {
        let [_, message] = fixture.until_failing(job, &[reason]).await?;
        ensure!(message.contains(words), "{message}");
        let explained = fixture.explained(&format!("job/{job}")).await?;
        ensure!(explained.contains(&format!("{reason}: {message}")), "{explained}");
    }
    let jobs: Api<Job> = fixture.hub.api(fixture.namespace());
    for job in ["unconfigured", "lonely"] {
        jobs.delete(job, &DeleteParams::background()).await?;
    }
    fixture.until_no_pod_is_left().await?;
    ensure!(fixture.whole_diary()?.is_empty(), "a container ran");
    Ok(())
}

/// Whether a container waits for this reason.
fn waits_for(pod: &Pod, reason: &str) -> bool {
    let containers =
        pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let waiting = containers.filter_map(|one| one.state.as_ref()?.waiting.as_ref());
    waiting.into_iter().any(|waiting| waiting.reason.as_deref() == Some(reason))
}
