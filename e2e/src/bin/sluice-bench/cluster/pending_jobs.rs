//! Jobs of which each needs the whole quota, so that all but one are pending.

use std::time::Duration;

use anyhow::{Context, Result};
use crds::meta::is_true;
use crds::names::conditions::ADMITTED;
use crds::v1beta2::Workload;
use harness::{Cluster, Follow, secs};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::time::timeout;

use super::QUOTA;
use crate::environment::{BenchEnvironment, NAME};
use crate::sample_job::{self, SampleJob};

/// For the Workloads of all Jobs.
pub(super) const WITHIN: Duration = secs(600);

/// The first Job, which has the whole quota.
pub(super) const RUNNING: &str = "pending-0";

/// Makes so many Jobs, and waits until the first one is admitted and all have Workloads.
pub(super) async fn fill(field: &BenchEnvironment<'_>, jobs: usize) -> Result<()> {
    submit(field, RUNNING).await?;
    admitted_other_than(field, "").await?;
    let creates =
        (1..jobs).map(|number| async move { submit(field, &format!("pending-{number}")).await });
    sample_job::submit_all(creates).await?;
    let hub = &field.installation.hub;
    let all = |all: &[Workload]| all.len() == jobs;
    hub.until_all(&hub.api(NAME), "", "every Job has a Workload", WITHIN, all).await?;
    Ok(())
}

/// Deletes the Job that has the quota.
pub(super) async fn delete_running(hub: &Cluster) -> Result<()> {
    let jobs = hub.api::<Job>(NAME);
    let deleted = jobs.delete(RUNNING, &DeleteParams::background()).await;
    deleted.map(drop).context("deleting the running Job")
}

async fn submit(field: &BenchEnvironment<'_>, name: &str) -> Result<()> {
    let requests = json!({"cpu": QUOTA.to_string()});
    SampleJob { requests, ..SampleJob::small(name, 600) }.submit(&field.installation.hub).await
}

/// Waits until a Workload of another Job than this one is admitted.
pub(super) async fn admitted_other_than(field: &BenchEnvironment<'_>, job: &str) -> Result<()> {
    AdmissionWatch::new(field).until_other_than(job).await
}

/// A watch of the Workloads. Of thousands only the changed one is looked at: the process that watches shares the machine with what it
/// measures.
pub(super) struct AdmissionWatch(Follow<Workload>);

impl AdmissionWatch {
    fn new(field: &BenchEnvironment<'_>) -> Self {
        Self(Follow::new(field.installation.hub.api::<Workload>(NAME)))
    }

    /// A watch that has listed the Workloads: the list takes seconds of the cores that the measured program needs.
    pub(super) async fn listed(field: &BenchEnvironment<'_>) -> Self {
        let mut watch = Self::new(field);
        watch.0.next().await;
        watch
    }

    /// Waits until a Workload of another Job than this one is seen as admitted.
    pub(super) async fn until_other_than(&mut self, job: &str) -> Result<()> {
        let other = |one: &Workload| {
            let owners = one.owner_references();
            is_true(&one.status.conditions, ADMITTED)
                && owners.iter().all(|owner| owner.name != job)
        };
        let admitted = async { while !self.0.next().await.present().iter().any(other) {} };
        timeout(WITHIN, admitted).await.context("no Workload was admitted")
    }
}
