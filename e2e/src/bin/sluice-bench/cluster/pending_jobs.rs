//! Jobs of which each needs the whole quota, so that all but one are pending.

use std::time::Duration;

use anyhow::Result;
use crds::meta::is_true;
use crds::names::conditions::ADMITTED;
use crds::v1beta2::Workload;
use harness::secs;
use kube::ResourceExt;
use serde_json::json;

use super::QUOTA;
use crate::environment::{BenchEnvironment, NAME};
use crate::sample_job::{self, SampleJob};

/// For the Workloads of all Jobs.
pub(super) const WITHIN: Duration = secs(600);

/// Makes further Jobs until there are so many, and waits for their Workloads. The first one is there.
pub(super) async fn fill(field: &BenchEnvironment<'_>, jobs: usize) -> Result<()> {
    let creates =
        (1..jobs).map(|number| async move { submit(field, &format!("pending-{number}")).await });
    sample_job::submit_all(creates).await?;
    let hub = &field.installation.hub;
    let all = |all: &[Workload]| all.len() == jobs;
    hub.until_all(&hub.api(NAME), "", "every Job has a Workload", WITHIN, all).await?;
    Ok(())
}

/// Makes a Job.
pub(super) async fn submit(field: &BenchEnvironment<'_>, name: &str) -> Result<()> {
    let requests = json!({"cpu": QUOTA.to_string()});
    SampleJob { requests, ..SampleJob::small(name, 600) }.submit(&field.installation.hub).await
}

/// Waits until a Workload of another Job than this one is admitted.
pub(super) async fn admitted_other_than(field: &BenchEnvironment<'_>, job: &str) -> Result<()> {
    let hub = &field.installation.hub;
    let other = |one: &Workload| {
        let owners = one.owner_references();
        is_true(&one.status.conditions, ADMITTED) && owners.iter().all(|owner| owner.name != job)
    };
    let any = |all: &[Workload]| all.iter().any(other);
    hub.until_all(&hub.api(NAME), "", "a Workload is admitted", WITHIN, any).await?;
    Ok(())
}
