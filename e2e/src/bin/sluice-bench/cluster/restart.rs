//! A manager that starts with thousands of pending Jobs: the time until it admits one, and its memory.

use std::time::Instant;

use anyhow::{Context, Result};
use e2e::garbage_collector;
use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;

use super::pending_jobs::{admitted_other_than, fill, submit};
use crate::environment::{BenchEnvironment, NAME};
use crate::usage::ProcessUsage;

/// What was measured.
pub(super) struct RestartedManager {
    /// From the start of the process to the first admission, in seconds.
    pub(super) first_admission: f64,
    pub(super) usage: ProcessUsage,
}

/// Makes so many Jobs, of which one has the whole quota, and restarts the manager after the deletion of that one.
pub(super) async fn measure(
    field: &mut BenchEnvironment<'_>,
    jobs: usize,
) -> Result<RestartedManager> {
    let running = "pending-0";
    // The quota of the deleted Job is free once its Workload is collected.
    garbage_collector::until_it_knows_queues(&field.installation.hub, NAME).await?;
    submit(field, running).await?;
    admitted_other_than(field, "").await?;
    fill(field, jobs).await?;
    let hub = field.installation.hub.clone();
    field.stop_manager().await?;
    let params = DeleteParams::background();
    hub.api::<Job>(NAME).delete(running, &params).await.context("deleting the running Job")?;
    let begun = Instant::now();
    field.start_manager().await?;
    admitted_other_than(field, running).await?;
    let first_admission = begun.elapsed().as_secs_f64();
    Ok(RestartedManager { first_admission, usage: ProcessUsage::of(field.manager.process.pid())? })
}
