//! Something that belongs to a dispatched Job is deleted by hand.

use anyhow::{Context, Result};
use crds::v1beta2::Workload;
use e2e::world::SOON;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::json;

use crate::{
    place,
    site::{Site, delete, holds},
};

/// Long enough to be caught running.
const A_WHILE: u32 = 8;

/// A Job `train` of two pods that runs on the first worker, and its Workload.
async fn running(test: &str, seconds: u32) -> Result<(Site, Workload)> {
    let site = Site::shared(test).await?;
    site.nodes(1, 1, "2").await?;
    site.queue("4").await?;
    site.submit(&place::job("train", 2, "1", seconds)).await?;
    site.until_running("train", 2, 1).await?;
    let workload =
        site.until_workload("train", "is admitted", |one| holds(one, "Admitted")).await?;
    let started = |job: &Job| job.status.as_ref().is_some_and(|status| status.active == Some(2));
    site.hub().until(&site.api::<Job>(), "train", "shows its pods", SOON, started).await?;
    Ok((site, workload))
}

#[tokio::test]
async fn nothing_is_left_of_a_job_that_is_deleted_on_the_hub_while_it_runs() -> Result<()> {
    let (site, workload) = running("job_deleted", 3600).await?;
    delete(&site.api::<Job>(), "train").await?;
    site.hub().until_gone(&site.api::<Workload>(), &workload.name_any(), SOON).await?;
    site.until_nothing_is_left().await
}

#[tokio::test]
async fn a_job_whose_workload_is_deleted_on_the_hub_gets_another_and_runs_to_its_end() -> Result<()>
{
    let (site, workload) = running("workload_deleted", A_WHILE).await?;
    delete(&site.api::<Workload>(), &workload.name_any()).await?;
    let another = |one: &Workload| one.uid() != workload.uid();
    site.until_workload("train", "is another", another).await?;
    site.expect_once_in_the_end("train", 2).await
}

#[tokio::test]
async fn a_job_whose_workload_is_removed_by_force_gets_another_and_runs_to_its_end() -> Result<()> {
    let (site, workload) = running("workload_forced", A_WHILE).await?;
    let name = workload.name_any();
    site.change::<Workload>(&name, &json!({"metadata": {"finalizers": null}})).await?;
    delete(&site.api::<Workload>(), &name).await?;
    let another = |one: &Workload| one.uid() != workload.uid();
    site.until_workload("train", "is another", another).await?;
    site.expect_once_in_the_end("train", 2).await
}

#[tokio::test]
async fn a_clone_that_is_deleted_on_the_worker_is_dispatched_again() -> Result<()> {
    let (site, workload) = running("clone_deleted", A_WHILE).await?;
    delete(&site.worker(1).api::<Workload>(site.namespace()), &workload.name_any()).await?;
    site.expect_once_in_the_end("train", 2).await
}

#[tokio::test]
async fn a_job_that_is_deleted_on_the_worker_is_dispatched_again() -> Result<()> {
    let (site, _) = running("remote_job_deleted", A_WHILE).await?;
    let jobs = site.worker(1).api::<Job>(site.namespace());
    let first = jobs.get("train").await?.uid().context("a uid")?;
    delete(&jobs, "train").await?;
    let another = |job: &Job| job.uid().is_some_and(|uid| uid != first);
    site.worker(1).until(&jobs, "train", "is made anew", SOON, another).await?;
    site.expect_once_in_the_end("train", 2).await
}
