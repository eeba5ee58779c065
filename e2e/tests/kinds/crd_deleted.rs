//! The CRD of a kind is deleted while its jobs run, and with it all of them.

use anyhow::{Result, ensure};
use crds::v1beta2::{ClusterQueue, Workload};
use e2e::{installation::TIMEOUT, objects::LONG, waits::while_pods_end};
use harness::{Cluster, RunVerdict};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DeleteParams;
use serde_json::json;

use crate::{
    fixture::KindFixture,
    kind_under_test::{JobPlan, KindUnderTest, training_crd},
    shared_installation::{DELETED, DELETED_THERE, serve},
};

/// Deletes the CRD of the made-up kind and waits until it is gone: the API server has deleted all objects of the kind by then.
async fn delete_crd(cluster: &Cluster, fixture: &KindFixture) -> Result<()> {
    let crds = cluster.cluster_api::<CustomResourceDefinition>();
    let name = format!("{}.{}", fixture.tested.kind.plural(), fixture.tested.kind.group());
    crds.delete(&name, &DeleteParams::default()).await?;
    Ok(cluster.until_gone(&crds, &name, 2 * TIMEOUT).await?)
}

/// Their Workloads are gone and their quota is free. A kind that is served again is managed again.
#[tokio::test]
async fn a_hundred_started_jobs_of_a_deleted_crd_leave_no_workload_and_no_usage() -> Result<()> {
    let tested = KindUnderTest::training(DELETED)?;
    let mut fixture = KindFixture::without_operators("deleted", tested).await?;
    fixture.room_on_hub(100).await?;
    let mut job = fixture.tested.job_of(&JobPlan::of("job", LONG));
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
    for number in 0..100 {
        job["metadata"]["name"] = json!(format!("job-{number}"));
        fixture.create(job.clone()).await?;
    }
    let (hub, namespace) = (fixture.hub(), fixture.namespace());
    let queues = hub.cluster_api::<ClusterQueue>();
    let full = |queue: &ClusterQueue| queue.status.admitted_workloads == 100;
    hub.until(&queues, namespace, "has admitted all", 2 * TIMEOUT, full).await?;
    for number in 0..100 {
        fixture.until_started(hub, &format!("job-{number}")).await?;
    }

    delete_crd(hub, &fixture).await?;
    let none = |all: &[Workload]| all.is_empty();
    hub.until_all(&fixture.workloads(hub), "", "no Workload is left", 2 * TIMEOUT, none).await?;
    let idle = |queue: &ClusterQueue| {
        queue.status.admitted_workloads == 0 && queue.status.reserving_workloads == 0
    };
    hub.until(&queues, namespace, "has no usage", TIMEOUT, idle).await?;

    serve(hub, &training_crd(DELETED)).await?;
    fixture.start_operators();
    let job = fixture.submit(&JobPlan::of("again", 1)).await?;
    ensure!(fixture.tested.is_suspended(&job), "by the webhook: {job}");
    fixture.until_succeeded("again").await?;
    fixture.until_finished("again").await?;
    Ok(())
}

/// The jobs run on the other worker, and those of other kinds go on.
#[tokio::test]
async fn a_job_whose_crd_is_deleted_on_its_worker_runs_on_another_one() -> Result<()> {
    let jobs = KindFixture::new("beside", KindUnderTest::job()?).await?;
    jobs.room_on(1, 1).await?;
    jobs.quota_on_workers(1).await?;
    jobs.submit_for_workers(&JobPlan::of("train", LONG)).await?;
    jobs.until_running(jobs.worker(1), "train").await?;

    let fixture =
        KindFixture::new("deleted_there", KindUnderTest::training(DELETED_THERE)?).await?;
    fixture.room_on(1, 1).await?;
    fixture.quota_on_workers(1).await?;
    fixture.submit_for_workers(&JobPlan::of("train", LONG)).await?;
    fixture.until_running(fixture.worker(1), "train").await?;
    fixture.room_on(2, 1).await?;
    delete_crd(fixture.worker(1), &fixture).await?;
    fixture.until_running(fixture.worker(2), "train").await?;

    for one in [&fixture, &jobs] {
        let workers = &one.installation.workers;
        let place = (one.namespace(), "train");
        while_pods_end(workers, place, one.until_succeeded("train")).await?;
    }
    let finished = fixture.until_finished("train").await?;
    ensure!(finished.status.cluster_name.as_deref() == Some("worker-2"), "{:?}", finished.status);
    fixture.expect("train", &[RunVerdict::Moved]).await?;
    jobs.expect("train", &[RunVerdict::Once]).await
}
