//! A kind that a cluster does not serve at first.

use anyhow::{Result, ensure};
use crds::{
    meta::is_true,
    names::reasons::{INTEGRATION_AVAILABLE, INTEGRATION_UNAVAILABLE},
    v1beta2::Workload,
};
use e2e::installation::TIMEOUT;
use harness::Cluster;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use serde_json::json;

use crate::{
    fixture::KindFixture,
    kind_under_test::{JobPlan, KindUnderTest, training_crd},
    shared_installation::{OTHER_VERSION, SERVED_LATER, SERVED_PARTLY, serve},
};

#[tokio::test]
async fn a_kind_that_the_manager_serves_later_needs_no_restart() -> Result<()> {
    let jobs = KindFixture::new("before", KindUnderTest::job()?).await?;
    jobs.room_on_hub(1).await?;
    jobs.submit(&JobPlan::of("train", 1)).await?;
    jobs.until_finished("train").await?;

    let fixture = KindFixture::new("later", KindUnderTest::training(SERVED_LATER)?).await?;
    fixture.room_on_hub(1).await?;
    until_reported(fixture.hub(), INTEGRATION_UNAVAILABLE).await?;
    serve(fixture.hub(), &training_crd(SERVED_LATER)).await?;
    let job = fixture.submit(&JobPlan::of("train", 1)).await?;
    ensure!(fixture.tested.is_suspended(&job), "by the webhook: {job}");
    fixture.until_succeeded("train").await?;
    fixture.until_finished("train").await?;
    until_reported(fixture.hub(), INTEGRATION_AVAILABLE).await
}

/// Waits for the Event about the manager's namespace that names the kind which is served later.
async fn until_reported(hub: &Cluster, reason: &str) -> Result<()> {
    let about = |event: &Event| {
        let note = event.note.as_deref().unwrap_or_default();
        event.reason.as_deref() == Some(reason) && note.contains(SERVED_LATER)
    };
    let what = format!("an Event {reason}");
    let reported = |all: &[Event]| all.iter().any(about);
    hub.until_all(&hub.api::<Event>("default"), "", &what, TIMEOUT, reported).await?;
    Ok(())
}

/// The cluster serves another version of the kind first. Its jobs wait unmanaged, and are taken over once the version is served.
#[tokio::test]
async fn a_job_of_an_unknown_version_is_managed_once_the_known_one_is_served() -> Result<()> {
    let jobs = KindFixture::new("unaffected", KindUnderTest::job()?).await?;
    jobs.room_on_hub(1).await?;
    let fixture =
        KindFixture::new("unknown_version", KindUnderTest::training(OTHER_VERSION)?).await?;
    fixture.room_on_hub(1).await?;
    let known = training_crd(OTHER_VERSION);
    let other = known.replace("name: v1\n", "name: v9\n");
    serve(fixture.hub(), &other).await?;
    let mut job = fixture.tested.job_of(&JobPlan::of("train", 1));
    job["apiVersion"] = json!(format!("{OTHER_VERSION}/v9"));
    job["metadata"]["namespace"] = json!(fixture.namespace());
    // Its operator could run it before the manager has seen it: no webhook is called for the other version.
    job["spec"]["run"]["suspend"] = json!(true);
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
    fixture.hub().apply(&job.to_string(), fixture.namespace()).await?;
    // A Job that was created later ends first.
    jobs.submit(&JobPlan::of("train", 1)).await?;
    jobs.until_finished("train").await?;
    let workloads = fixture.hub().api::<Workload>(fixture.namespace());
    ensure!(workloads.list(&ListParams::default()).await?.items.is_empty());

    let both = known.replace(
        "  versions:\n",
        "  versions:\n  - {name: v9, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n",
    );
    serve(fixture.hub(), &both).await?;
    fixture.until_succeeded("train").await?;
    fixture.until_finished("train").await?;
    Ok(())
}

/// The second worker has more room, but not the kind.
#[tokio::test]
async fn a_worker_gets_jobs_of_a_kind_once_it_serves_it() -> Result<()> {
    let jobs = KindFixture::new("meanwhile", KindUnderTest::job()?).await?;
    jobs.room_on(2, 1).await?;
    jobs.quota_on_workers(1).await?;
    let fixture = KindFixture::new("partly", KindUnderTest::training(SERVED_PARTLY)?).await?;
    fixture.room_on(1, 1).await?;
    fixture.room_on(2, 2).await?;
    fixture.quota_on_workers(3).await?;
    fixture.submit_for_workers(&JobPlan::of("first", 3600)).await?;
    fixture.until_running(fixture.worker(1), "first").await?;
    fixture.submit_for_workers(&JobPlan::of("second", 1)).await?;
    let waits = |one: &Workload| {
        let conditions = &one.status.conditions;
        conditions.iter().any(|one| one.r#type == "QuotaReserved" && one.status == "False")
            && !is_true(conditions, "Admitted")
    };
    let workload = fixture.until_workload("second", "waits", waits).await?;
    ensure!(workload.status.cluster_name.is_none(), "{:?}", workload.status);

    jobs.submit_for_workers(&JobPlan::of("train", 1)).await?;
    let finished = jobs.until_finished("train").await?;
    ensure!(finished.status.cluster_name.as_deref() == Some("worker-2"), "{:?}", finished.status);

    serve(fixture.worker(2), &training_crd(SERVED_PARTLY)).await?;
    fixture.until_succeeded("second").await?;
    let finished = fixture.until_finished("second").await?;
    ensure!(finished.status.cluster_name.as_deref() == Some("worker-2"), "{:?}", finished.status);
    Ok(())
}
