//! What an agent does while nothing happens.

use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use harness::secs;
use kube::api::DynamicObject;
use tokio::time;

use super::{
    agent,
    sample_cluster::{SampleCluster, is_ready, ray_clusters},
};
use crate::counters::Counters;
use crate::environment::BenchEnvironment;
use crate::figures::per;
use crate::usage::ProcessUsage;

/// For all RayClusters.
const WITHIN: Duration = secs(600);

/// Creations at a time.
const AT_A_TIME: usize = 16;

/// What was observed.
pub(super) struct IdleAgent {
    /// Writes of operators.
    pub(super) writes: f64,
    pub(super) requests_per_second: f64,
    pub(super) resident: u64,
    pub(super) millicpus: f64,
}

/// The time of a measurement.
pub(super) async fn wait(seconds: u64) {
    time::sleep(Duration::from_secs(seconds)).await;
}

/// Runs so many RayClusters, each a head, on the worker.
pub(super) async fn run(field: &BenchEnvironment<'_>, clusters: usize) -> Result<()> {
    let worker = field.worker("worker-1")?;
    let names: Vec<String> = (0..clusters).map(|number| format!("idle-{number}")).collect();
    stream::iter(&names)
        .map(|name| async move {
            SampleCluster { name, workers: 0, is_queued: false }.create(worker).await
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<()>>()
        .await?;
    let all = |found: &[DynamicObject]| found.len() == clusters && found.iter().all(is_ready);
    worker.until_all(&ray_clusters(worker), "", "are ready", WITHIN, all).await?;
    // The last status is written shortly after the pods.
    wait(20).await;
    Ok(())
}

/// Observes the agent for so many seconds.
pub(super) async fn observe(field: &BenchEnvironment<'_>, seconds: u64) -> Result<IdleAgent> {
    // What belongs to the start is over.
    wait(10).await;
    let process = &agent(field)?.process;
    let (before, usage) = (Counters::read(field).await?, ProcessUsage::of(process.pid())?);
    wait(seconds).await;
    let now = ProcessUsage::of(process.pid())?;
    let counted = Counters::read(field).await?.since(&before);
    let writes = counted.writes.iter().filter(|(it, _)| it.purpose.starts_with("operator-"));
    // Requests of the agent's report belong to it, whatever it operates.
    let requests = counted.requests.iter().filter(|(kind, _)| {
        kind.writer == "agent" && !kind.resource.starts_with("clustercapacities")
    });
    let period = usize::try_from(seconds)?;
    Ok(IdleAgent {
        writes: per(writes.map(|(_, count)| count).sum(), 1),
        requests_per_second: per(requests.map(|(_, count)| count).sum(), period),
        resident: now.resident_bytes,
        millicpus: now.cpu_since(&usage) * 1e3 / per(seconds, 1),
    })
}
