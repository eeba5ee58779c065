//! A manager that starts with thousands of pending Jobs: the time until it admits one, and its memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crds::meta::is_true;
use crds::names::conditions::ADMITTED;
use crds::v1beta2::Workload;
use e2e::garbage_collector;
use harness::secs;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use super::QUOTA;
use crate::environment::{BenchEnvironment, NAME};
use crate::sample_job::{self, SampleJob};
use crate::usage::ProcessUsage;

/// For the Workloads of all Jobs.
const WITHIN: Duration = secs(600);

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
    let running = "restart-0";
    // The quota of the deleted Job is free once its Workload is collected.
    garbage_collector::until_it_knows_queues(&field.installation.hub, NAME).await?;
    submit(field, running).await?;
    admitted_other_than(field, "").await?;
    let field_ref = &*field;
    let creates = (1..jobs)
        .map(|number| async move { submit(field_ref, &format!("restart-{number}")).await });
    sample_job::submit_all(creates).await?;
    let hub = field.installation.hub.clone();
    let workloads = hub.api::<Workload>(NAME);
    let all = |all: &[Workload]| all.len() == jobs;
    hub.until_all(&workloads, "", "every Job has a Workload", WITHIN, all).await?;
    field.stop_manager().await?;
    let params = DeleteParams::background();
    hub.api::<Job>(NAME).delete(running, &params).await.context("deleting the running Job")?;
    let begun = Instant::now();
    field.start_manager().await?;
    admitted_other_than(field, running).await?;
    let first_admission = begun.elapsed().as_secs_f64();
    Ok(RestartedManager { first_admission, usage: ProcessUsage::of(field.manager.process.pid())? })
}

async fn submit(field: &BenchEnvironment<'_>, name: &str) -> Result<()> {
    let requests = json!({"cpu": QUOTA.to_string()});
    SampleJob { requests, ..SampleJob::small(name, 600) }.submit(&field.installation.hub).await
}

/// Waits until a Workload of another Job than this one is admitted.
async fn admitted_other_than(field: &BenchEnvironment<'_>, job: &str) -> Result<()> {
    let hub = &field.installation.hub;
    let other = |one: &Workload| {
        let owners = one.owner_references();
        is_true(&one.status.conditions, ADMITTED) && owners.iter().all(|owner| owner.name != job)
    };
    let any = |all: &[Workload]| all.iter().any(other);
    hub.until_all(&hub.api(NAME), "", "a Workload is admitted", WITHIN, any).await?;
    Ok(())
}
