//! Whole lives of Jobs on the manager's own cluster, webhooks included: CPU per Job.

use std::time::Duration;

use anyhow::Result;
use crds::meta::is_true;
use crds::names::conditions::FINISHED;
use crds::v1beta2::Workload;
use harness::{NodeSpec, secs};
use serde_json::json;

use crate::environment::{BenchEnvironment, NAME};
use crate::sample_job::{self, SampleJob};
use crate::usage::ProcessUsage;

/// For all Jobs.
const WITHIN: Duration = secs(600);

/// Runs so many Jobs. Returns the CPU seconds of the manager.
pub(super) async fn cpu_seconds(field: &BenchEnvironment<'_>, jobs: usize) -> Result<f64> {
    let hub = &field.installation.hub;
    hub.add_nodes(&NodeSpec { count: 2, cpu: "1000".to_owned(), ..NodeSpec::default() }).await?;
    let before = ProcessUsage::of(field.manager.process.pid())?;
    let creates = (0..jobs).map(|number| async move {
        let name = format!("life-{number}");
        let requests = json!({"cpu": "10m"});
        SampleJob { requests, ..SampleJob::small(&name, 1) }.submit(hub).await
    });
    sample_job::submit_all(creates).await?;
    let over = |all: &[Workload]| {
        all.len() == jobs && all.iter().all(|one| is_true(&one.status.conditions, FINISHED))
    };
    hub.until_all(&hub.api(NAME), "", "all Jobs are finished", WITHIN, over).await?;
    Ok(ProcessUsage::of(field.manager.process.pid())?.cpu_since(&before))
}
