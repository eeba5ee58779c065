//! What only a kubelet finds out about containers reaches the manager: memory limits, images, configuration.

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use harness::RunVerdict;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{CasePlace, place};
use crate::installation::TIMEOUT;
use crate::waits;

/// The exit code of a container that SIGKILL ended.
const KILLED: u32 = 137;

/// An image that no node has and no registry serves.
const NO_IMAGE: &str = "lab.sluice.dev/none:1";

pub(super) async fn above_its_memory_limit_is_killed(place: &CasePlace<'_>) -> Result<()> {
    place.queue_with_memory().await?;
    let mut job = place::failing_with(place::job("eats", 1, 1), KILLED);
    let container = &mut job["spec"]["template"]["spec"]["containers"][0];
    // Not every busybox has links for all of its tools.
    let eats = "exec busybox dd if=/dev/zero of=/dev/null bs=200M count=2";
    container["command"] = json!(["sh", "-c", eats]);
    container["resources"]["limits"] = json!({"memory": "32Mi"});
    place.submit(&job).await?;
    place.until_terminated("eats", "OOMKilled").await?;
    let (_, end) = place.until_ended("eats", "Failed").await?;
    let message = end.message.unwrap_or_default();
    ensure!(message.contains("failed with exit code 137"), "{message}");
    place.until_nothing_is_left().await?;
    // One run, and no pod of it succeeded.
    place.ensure_once("eats", 0).await.map(drop)
}

pub(super) async fn without_its_image_waits(place: &CasePlace<'_>) -> Result<()> {
    let mut job = place::job("broken", 1, 1);
    job["spec"]["template"]["spec"]["containers"][0]["image"] = json!(NO_IMAGE);
    waits_and_says(place, &job, &["ErrImagePull", "ImagePullBackOff"], NO_IMAGE).await
}

pub(super) async fn without_its_configuration_waits(place: &CasePlace<'_>) -> Result<()> {
    let mut job = place::job("broken", 1, 1);
    job["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": "missing"}}]);
    let words = "configmap \"missing\" not found";
    waits_and_says(place, &job, &["CreateContainerConfigError"], words).await
}

/// The container of this Job never starts; the manager shows one of the reasons and these words. Another Job runs beside it.
async fn waits_and_says(
    place: &CasePlace<'_>,
    job: &Value,
    reasons: &[&str],
    words: &str,
) -> Result<()> {
    place.queue(2).await?;
    place.submit(job).await?;
    let workloads = (place.hub, place.namespace);
    let shown = |one: &Workload| {
        waits::pods_failing(one, reasons).is_some_and(|one| one.message.contains(words))
    };
    let what = format!("shows one of {reasons:?} with {words:?}");
    waits::until_workload(workloads, ("broken", &what), 2 * TIMEOUT, shown).await?;

    place.submit(&place::job("good", 1, 1)).await?;
    place.until_ended("good", "Complete").await?;
    place.ensure_once("good", 1).await?;

    let jobs: Api<Job> = place.hub.api(place.namespace);
    jobs.delete("broken", &DeleteParams::background()).await?;
    place.until_nothing_is_left().await?;
    place.ensure_verdict("broken", 1, RunVerdict::NeverRan).await.map(drop)
}
