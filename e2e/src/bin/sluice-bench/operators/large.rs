//! Writes and CPU of one large RayCluster, from its creation until it is ready.

use std::time::{Duration, Instant};

use anyhow::Result;
use harness::secs;

use super::{
    agent,
    sample_cluster::{SampleCluster, is_ready, ray_clusters},
};
use crate::counters::Counters;
use crate::environment::BenchEnvironment;
use crate::figures::per;
use crate::usage::ProcessUsage;

/// For all of its pods.
const WITHIN: Duration = secs(600);

/// The status may be written for the last time after it says ready.
const AFTER: u64 = 10;

/// What was measured.
pub(super) struct LargeCluster {
    /// Writes of the agent beside pods and events.
    pub(super) writes: f64,
    pub(super) events: f64,
    pub(super) cpu_seconds: f64,
    pub(super) took: Duration,
}

/// Creates it on the worker: without a manager nothing else is written.
pub(super) async fn measure(field: &BenchEnvironment<'_>, workers: usize) -> Result<LargeCluster> {
    let worker = field.worker("worker-1")?;
    let process = &agent(field)?.process;
    let (before, usage) = (Counters::read(field).await?, ProcessUsage::of(process.pid())?);
    let begun = Instant::now();
    SampleCluster { name: "large", workers, is_queued: false }.create(worker).await?;
    worker.until(&ray_clusters(worker), "large", "is ready", WITHIN, is_ready).await?;
    let took = begun.elapsed();
    super::idle::wait(AFTER).await;
    let cpu_seconds = ProcessUsage::of(process.pid())?.cpu_since(&usage);
    let counted = Counters::read(field).await?.since(&before);
    let by_purpose = |is: fn(&str) -> bool| {
        let of_agent =
            counted.writes.iter().filter(|(it, _)| it.writer == "agent" && is(&it.purpose));
        of_agent.map(|(_, count)| count).sum::<u64>()
    };
    let of_operators = by_purpose(|purpose| purpose.starts_with("operator-"));
    let pods = u64::try_from(workers + 1)?;
    Ok(LargeCluster {
        writes: per(of_operators.saturating_sub(pods), 1),
        events: per(by_purpose(|purpose| purpose.starts_with("event-")), 1),
        cpu_seconds,
        took,
    })
}
