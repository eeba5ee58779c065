//! An object of a dispatched Job is deleted.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, delete, holds, said},
    objects::{self, LONG},
};

/// A Job `train` of two pods that runs on the first worker, and its Workload.
async fn running(test: &str) -> Result<(DispatchFixture, Workload)> {
    running_on(test, "2").await
}

/// A Job `train` of two pods that runs on a worker with so much cpu, and its Workload.
async fn running_on(test: &str, cpu: &str) -> Result<(DispatchFixture, Workload)> {
    let fixture = DispatchFixture::shared(test).await?;
    fixture.nodes(1, 1, cpu).await?;
    fixture.queue("4").await?;
    fixture.submit(&objects::job("train", 2, "1", LONG)).await?;
    fixture.until_running("train", 2, 1).await?;
    let workload =
        fixture.until_workload("train", "is admitted", |one| holds(one, "Admitted")).await?;
    let started = |job: &Job| job.status.as_ref().is_some_and(|status| status.active == Some(2));
    fixture.hub().until(&fixture.api::<Job>(), "train", "shows its pods", TIMEOUT, started).await?;
    Ok((fixture, workload))
}

#[tokio::test]
async fn a_job_deleted_on_the_manager_while_it_runs_is_deleted_on_the_worker() -> Result<()> {
    let (fixture, workload) = running("job_deleted").await?;
    delete(&fixture.api::<Job>(), "train").await?;
    fixture.hub().until_gone(&fixture.api::<Workload>(), &workload.name_any(), TIMEOUT).await?;
    fixture.until_nothing_is_left().await
}

/// The copy of the first Job is still there when the worker admits the second one, for which it has room.
#[tokio::test]
async fn a_job_that_is_made_again_while_its_copy_leaves_runs_without_an_eviction() -> Result<()> {
    let (fixture, workload) = running_on("made_again", "4").await?;
    let copies = fixture.worker(1).api::<Job>(fixture.namespace());
    hold(&copies, json!(["sluice.dev/test"])).await?;
    delete(&fixture.api::<Job>(), "train").await?;
    fixture.hub().until_gone(&fixture.api::<Job>(), "train", TIMEOUT).await?;
    fixture.submit(&objects::job("train", 2, "1", LONG)).await?;
    let another = |one: &Workload| one.uid() != workload.uid();
    let second = fixture.until_workload("train", "is another", another).await?.name_any();
    let clones = fixture.worker(1).api::<Workload>(fixture.namespace());
    let admitted = |one: &Workload| holds(one, "Admitted");
    fixture.worker(1).until(&clones, &second, "is admitted", TIMEOUT, admitted).await?;
    ensure!(copies.get("train").await?.metadata.deletion_timestamp.is_some(), "its name is held");
    hold(&copies, json!(null)).await?;
    fixture.until_running("train", 2, 1).await?;
    let second = fixture.api::<Workload>().get(&second).await?;
    let evicted = said(&second.status.conditions, "Evicted");
    ensure!(evicted.is_none() && holds(&second, "Admitted"), "{:?}", second.status);
    fixture.expect_once_when_ended("train", 2).await
}

/// Sets the finalizers of the copy.
async fn hold(copies: &Api<Job>, finalizers: Value) -> Result<()> {
    let fields = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    copies.patch("train", &PatchParams::default(), &fields).await?;
    Ok(())
}

#[tokio::test]
async fn a_job_whose_workload_is_deleted_on_the_hub_gets_another_and_runs_to_its_end() -> Result<()>
{
    let (fixture, workload) = running("workload_deleted").await?;
    delete(&fixture.api::<Workload>(), &workload.name_any()).await?;
    let another = |one: &Workload| one.uid() != workload.uid();
    fixture.until_workload("train", "is another", another).await?;
    fixture.expect_once_when_ended("train", 2).await
}

#[tokio::test]
async fn a_job_whose_workload_is_deleted_by_force_gets_another_and_finishes() -> Result<()> {
    let (fixture, workload) = running("workload_forced").await?;
    let name = workload.name_any();
    fixture.change::<Workload>(&name, &json!({"metadata": {"finalizers": null}})).await?;
    delete(&fixture.api::<Workload>(), &name).await?;
    let another = |one: &Workload| one.uid() != workload.uid();
    fixture.until_workload("train", "is another", another).await?;
    fixture.expect_once_when_ended("train", 2).await
}

#[tokio::test]
async fn a_remote_workload_deleted_on_the_worker_is_dispatched_again() -> Result<()> {
    let (fixture, workload) = running("clone_deleted").await?;
    delete(&fixture.worker(1).api::<Workload>(fixture.namespace()), &workload.name_any()).await?;
    fixture.expect_once_when_ended("train", 2).await
}

#[tokio::test]
async fn a_remote_job_deleted_on_the_worker_is_dispatched_again() -> Result<()> {
    let (fixture, _) = running("remote_job_deleted").await?;
    let jobs = fixture.worker(1).api::<Job>(fixture.namespace());
    let first = jobs.get("train").await?.uid().context("a uid")?;
    delete(&jobs, "train").await?;
    let another = |job: &Job| job.uid().is_some_and(|uid| uid != first);
    fixture.worker(1).until(&jobs, "train", "is recreated", TIMEOUT, another).await?;
    fixture.expect_once_when_ended("train", 2).await
}
