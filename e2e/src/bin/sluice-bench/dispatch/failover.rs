//! A worker stops answering: the time until its Jobs are recorded for another one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use harness::{Component, secs};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::environment::{BenchEnvironment, NAME};
use crate::sample_job::{self, SampleJob};

/// From the loss of a worker until its Jobs are given to others.
const LOST_AFTER: &str = "15s";

/// For all Jobs to be recorded elsewhere.
const WITHIN: Duration = secs(180);

/// The Jobs of the lost worker run for longer than the measurement.
const RUN: u32 = 600;

/// The blocks of the manager's configuration.
pub(super) fn settings() -> Value {
    json!({"multiKueue": {
        "dispatcherName": "sluice.dev/capacity", "workerLostTimeout": LOST_AFTER,
    }})
}

/// Runs twice as many Jobs on two equal workers, stops the API server of the worker that has more, and measures until the last
/// Workload of it is recorded for the other one. In seconds.
pub(super) async fn run(field: &BenchEnvironment<'_>, jobs: usize) -> Result<f64> {
    let hub = &field.installation.hub;
    let creates = (1..=2 * jobs).map(|number| async move {
        SampleJob::small(&format!("lost-{number}"), RUN).submit(hub).await
    });
    sample_job::submit_all(creates).await?;
    let workloads = hub.api::<Workload>(NAME);
    let all_recorded = |all: &[Workload]| {
        all.len() == 2 * jobs && all.iter().all(|one| one.status.cluster_name.is_some())
    };
    let placed = hub.until_all(&workloads, "", "all are recorded", TIMEOUT, all_recorded).await?;
    let by_cluster = clusters(&placed);
    let Some((lost, names)) = by_cluster.iter().max_by_key(|(_, names)| names.len()) else {
        return Ok(0.0);
    };
    ensure!(names.len() < 2 * jobs, "one worker has all Jobs: {by_cluster:?}");
    field.worker(lost)?.pause(Component::ApiServer)?;
    let begun = Instant::now();
    let elsewhere = |all: &[Workload]| {
        let mut moved = all.iter().filter(|one| names.contains(&one.name_any()));
        moved.all(|one| one.status.cluster_name.as_ref().is_some_and(|name| name != lost))
    };
    let moved = hub.until_all(&workloads, "", "recorded elsewhere", WITHIN, elsewhere).await;
    let took = begun.elapsed();
    field.worker(lost)?.resume(Component::ApiServer)?;
    moved?;
    Ok(took.as_secs_f64())
}

fn clusters(workloads: &[Workload]) -> BTreeMap<String, Vec<String>> {
    let mut by_cluster: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in workloads {
        let cluster = one.status.cluster_name.clone().unwrap_or_default();
        by_cluster.entry(cluster).or_default().push(one.name_any());
    }
    by_cluster
}
