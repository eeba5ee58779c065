//! Many Jobs at once: the admission rate.
//!
//! The controller managers of the workers are paused, so that no pods are created, whose writes would use the measured CPUs. Jobs
//! are unsuspended and do not proceed.

use std::time::{Duration, Instant};

use anyhow::Result;
use harness::{Component, secs};

use super::sequence::{quantiles, usage};
use super::timestamps::{JobTimestamps, Watches};
use crate::counters::Counters;
use crate::environment::BenchEnvironment;
use crate::quantiles::Quantiles;
use crate::sample_job::{self, SampleJob};
use crate::usage::ProcessUsage;

/// For all of them.
const WITHIN: Duration = secs(180);

/// What was measured.
pub(crate) struct Burst {
    pub(crate) workers: usize,
    pub(crate) jobs: usize,
    /// From the first submission to the last create that was answered.
    pub(crate) submitting: Duration,
    /// From the first submission to the last Job that was admitted.
    pub(crate) admitting: Duration,
    /// From a Job's own submission.
    pub(crate) admitted: Quantiles,
    pub(crate) unsuspended: Quantiles,
    pub(crate) counters: Counters,
    pub(crate) manager_cpu_seconds: f64,
    pub(crate) agents_cpu_seconds: f64,
    pub(crate) manager: ProcessUsage,
    /// The largest.
    pub(crate) agent: ProcessUsage,
}

impl Burst {
    /// Jobs per second, from submission to admission.
    pub(crate) fn rate(&self) -> f64 {
        rate(self.jobs, self.admitting)
    }

    /// Accepted Jobs per second.
    pub(crate) fn offered(&self) -> f64 {
        rate(self.jobs, self.submitting)
    }
}

#[expect(clippy::cast_precision_loss, reason = "thousands of Jobs")]
fn rate(jobs: usize, took: Duration) -> f64 {
    jobs as f64 / took.as_secs_f64()
}

/// Submits so many Jobs and waits until all run on a worker.
pub(crate) async fn run(field: &BenchEnvironment<'_>, jobs: usize) -> Result<Burst> {
    for worker in &field.installation.workers {
        worker.pause(Component::ControllerManager)?;
    }
    let watches = Watches::begin(field);
    let before = Counters::read(field).await?;
    let (manager, agents) = usage(field)?;
    let names: Vec<String> = (1..=jobs).map(|number| format!("burst-{number}")).collect();
    let begun = Instant::now();
    submit(field, &watches, &names).await?;
    let submitting = begun.elapsed();
    let done =
        |moments: &JobTimestamps| moments.admitted.is_some() && moments.unsuspended.is_some();
    let book = watches
        .until("all are admitted and unsuspended", WITHIN, |book| {
            names.iter().all(|name| book.get(name).is_some_and(done))
        })
        .await?;
    let counters = Counters::read(field).await?.since(&before);
    let (manager_after, agents_after) = usage(field)?;
    let spent = agents_after.iter().zip(&agents).map(|(after, before)| after.cpu_since(before));
    let moments: Vec<JobTimestamps> =
        names.iter().filter_map(|name| book.get(name)).copied().collect();
    let last = moments.iter().filter_map(|one| one.admitted).max();
    let largest = agents_after.iter().max_by_key(|usage| usage.resident_bytes);
    Ok(Burst {
        workers: field.installation.workers.len(),
        jobs,
        submitting,
        admitting: last.map_or(Duration::ZERO, |last| last.saturating_duration_since(begun)),
        admitted: quantiles(&moments, |one| (one.submitted, one.admitted)),
        unsuspended: quantiles(&moments, |one| (one.submitted, one.unsuspended)),
        counters,
        manager_cpu_seconds: manager_after.cpu_since(&manager),
        agents_cpu_seconds: spent.sum(),
        manager: manager_after,
        agent: largest.copied().unwrap_or_default(),
    })
}

async fn submit(field: &BenchEnvironment<'_>, watches: &Watches, names: &[String]) -> Result<()> {
    let hub = &field.installation.hub;
    let submissions = names.iter().map(|name| async {
        watches.submitted(name);
        SampleJob::small(name, 1).submit(hub).await
    });
    sample_job::submit_all(submissions).await
}
