//! A manager that starts with thousands of pending Jobs: the time until it admits one, and its memory.

use std::time::Instant;

use anyhow::Result;
use e2e::garbage_collector;

use super::pending_jobs::{AdmissionWatch, RUNNING, delete_running, fill};
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
    // The quota of the deleted Job is free once its Workload is collected.
    garbage_collector::until_it_knows_queues(&field.installation.hub, NAME).await?;
    fill(field, jobs).await?;
    let hub = field.installation.hub.clone();
    field.stop_manager().await?;
    delete_running(&hub).await?;
    let mut watch = AdmissionWatch::listed(field).await;
    let begun = Instant::now();
    let admitted = async {
        watch.until_other_than(RUNNING).await?;
        anyhow::Ok(begun.elapsed().as_secs_f64())
    };
    let (first_admission, ()) = tokio::try_join!(admitted, field.start_manager())?;
    Ok(RestartedManager { first_admission, usage: ProcessUsage::of(field.manager.process.pid())? })
}
