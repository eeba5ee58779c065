//! A large group of pods: the time to its Workload, and what it adds to the memory of the manager.

use std::time::{Duration, Instant};

use anyhow::Result;
use crds::v1beta2::Workload;
use harness::{Cluster, secs};
use k8s_openapi::api::core::v1::Pod;

use super::sample_pod::{SamplePod, may_start, name};
use crate::counters::Counters;
use crate::environment::{BenchEnvironment, NAME};
use crate::sample_job::submit_all;
use crate::usage::ProcessUsage;

const GROUP: &str = "group";

/// For the start of all members.
const WITHIN: Duration = secs(300);

/// What was measured.
pub(super) struct StartedGroup {
    /// From the answer to the create of the last member to the Workload.
    pub(super) to_workload: Duration,
    /// From there to the start of the last member.
    pub(super) to_start: Duration,
    /// Resident memory after it, less that before the first member.
    pub(super) grown_bytes: u64,
    /// The bound of the bucket of the longest decision meanwhile.
    pub(super) longest_decision_ms: u64,
}

/// Starts a group of so many pods.
pub(super) async fn measure(field: &BenchEnvironment<'_>, members: usize) -> Result<StartedGroup> {
    let hub = &field.installation.hub;
    let usage = || ProcessUsage::of(field.manager.process.pid());
    let before = usage()?;
    let counted = Counters::read(field).await?;
    submit_all((1..members).map(|number| submit(hub, number, members))).await?;
    submit(hub, 0, members).await?;
    let complete = Instant::now();
    let made = |all: &[Workload]| all.len() == 1;
    hub.until_all(&hub.api(NAME), "", "the group has a Workload", WITHIN, made).await?;
    let to_workload = complete.elapsed();
    let started = |all: &[Pod]| all.len() == members && all.iter().all(may_start);
    hub.until_all(&hub.api(NAME), "", "every member may start", WITHIN, started).await?;
    let to_start = complete.elapsed().saturating_sub(to_workload);
    let grown_bytes = usage()?.resident_bytes.saturating_sub(before.resident_bytes);
    let counters = Counters::read(field).await?.since(&counted);
    let longest_decision_ms = counters.longest_decision_ms();
    Ok(StartedGroup { to_workload, to_start, grown_bytes, longest_decision_ms })
}

async fn submit(hub: &Cluster, number: usize, members: usize) -> Result<()> {
    let (name, group) = (name(number), Some((GROUP, members)));
    SamplePod { name: &name, cpu: "1m", run_seconds: e2e::objects::LONG, group }.submit(hub).await
}
