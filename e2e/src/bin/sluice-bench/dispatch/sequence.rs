//! Jobs one after the other, each until its end: the cost of one Job on an idle installation.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use crds::{meta::is_true, names::conditions::FINISHED, v1beta2::Workload};
use e2e::{installation::TIMEOUT, waits};

use super::audit::LogPositions;
use super::timestamps::{JobTimestamps, Watches};
use crate::counters::{Counters, RequestKind};
use crate::environment::{BenchEnvironment, NAME};
use crate::quantiles::Quantiles;
use crate::sample_job::SampleJob;
use crate::usage::ProcessUsage;

/// What was measured.
pub(crate) struct Sequence {
    pub(crate) jobs: usize,
    /// From submission to each moment.
    pub(crate) admitted: Quantiles,
    pub(crate) unsuspended: Quantiles,
    pub(crate) pod_on_manager: Quantiles,
    /// From the end on the worker to the end on the manager.
    pub(crate) end_on_manager: Quantiles,
    pub(crate) counters: Counters,
    /// The requests as the API servers saw them.
    pub(crate) audit: Option<BTreeMap<RequestKind, u64>>,
    pub(crate) manager_cpu_seconds: f64,
    pub(crate) agents_cpu_seconds: f64,
    pub(crate) manager: ProcessUsage,
    /// The largest.
    pub(crate) agent: ProcessUsage,
}

/// Runs so many Jobs, after one that is not counted.
pub(crate) async fn run(
    field: &BenchEnvironment<'_>,
    jobs: usize,
    audit: bool,
) -> Result<Sequence> {
    let watches = Watches::begin(field);
    one(field, &watches, "warm-up").await?;
    let marks = audit.then(|| LogPositions::set(field)).transpose()?;
    let before = Counters::read(field).await?;
    let (manager, agents) = usage(field)?;
    let mut moments = Vec::new();
    for number in 1..=jobs {
        moments.push(one(field, &watches, &format!("one-{number}")).await?);
    }
    let counters = Counters::read(field).await?.since(&before);
    let audit = marks.map(|marks| marks.since(field)).transpose()?;
    let (manager_after, agents_after) = usage(field)?;
    let spent = agents_after.iter().zip(&agents).map(|(after, before)| after.cpu_since(before));
    let largest = agents_after.iter().max_by_key(|usage| usage.resident_bytes);
    Ok(Sequence {
        jobs,
        admitted: quantiles(&moments, |one| (one.submitted, one.admitted)),
        unsuspended: quantiles(&moments, |one| (one.submitted, one.unsuspended)),
        pod_on_manager: quantiles(&moments, |one| (one.submitted, one.pod_on_manager)),
        end_on_manager: quantiles(&moments, |one| (one.complete, one.complete_on_manager)),
        counters,
        audit,
        manager_cpu_seconds: manager_after.cpu_since(&manager),
        agents_cpu_seconds: spent.sum(),
        manager: manager_after,
        agent: largest.copied().unwrap_or_default(),
    })
}

/// From one moment to another, of all that have both.
pub(crate) fn quantiles(
    moments: &[JobTimestamps],
    between: impl Fn(&JobTimestamps) -> (Option<Instant>, Option<Instant>),
) -> Quantiles {
    let took = |one| -> Option<Duration> {
        let (from, to) = between(one);
        // Two watches may bring two moments in the other order; then nothing lies between.
        Some(to?.saturating_duration_since(from?))
    };
    Quantiles::of(moments.iter().filter_map(took))
}

/// Of the manager, and of each agent.
pub(crate) fn usage(field: &BenchEnvironment<'_>) -> Result<(ProcessUsage, Vec<ProcessUsage>)> {
    let agents = field.agents.iter().map(|agent| ProcessUsage::of(agent.process.pid()));
    Ok((ProcessUsage::of(field.manager.process.pid())?, agents.collect::<Result<_>>()?))
}

/// One Job, until nothing is to be written about it any more.
async fn one(field: &BenchEnvironment<'_>, watches: &Watches, name: &str) -> Result<JobTimestamps> {
    let hub = &field.installation.hub;
    watches.submitted(name);
    SampleJob::small(name, 1).submit(hub).await?;
    let over = |moments: &JobTimestamps| {
        moments.complete_on_manager.is_some() && moments.admitted.is_some()
    };
    let book = watches.until(name, TIMEOUT, |book| book.get(name).is_some_and(over)).await?;
    for worker in &field.installation.workers {
        waits::until_no_job_is_left(worker, NAME, TIMEOUT).await?;
    }
    let settled = |all: &[Workload]| {
        all.iter().all(|one| {
            let held = one.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
            is_true(&one.status.conditions, FINISHED) && !held
        })
    };
    hub.until_all(&hub.api(NAME), "", "finished and let go", TIMEOUT, settled).await?;
    Ok(book.get(name).copied().unwrap_or_default())
}
