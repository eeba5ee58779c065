//! The measurements.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout, timeout_at};

use super::{AgentFleet, AgentFleetPlan, JOBS, hub};
use crate::{
    api_double::{DoubleChange, DoubleFollow},
    installation::Program,
};

/// Between two looks at the doubles.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Lines of the log that a failure shows.
const LINES: usize = 40;

/// How long the manager may show nothing new.
const STALLED: Duration = Duration::from_secs(120);

/// Waits until this holds, for so long, while the manager runs.
pub(super) async fn until(
    manager: &Program,
    (what, within): (&str, Duration),
    is_so: impl Fn() -> bool,
) -> Result<()> {
    let waited = while_running(manager, timeout(within, holds(is_so))).await?;
    waited.with_context(|| format!("waiting until {what}: {}", manager.process.log_tail(LINES)))
}

/// Waits until this holds.
pub(super) async fn holds(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(POLL_INTERVAL).await;
    }
}

/// What the future gives, unless the manager ends before.
async fn while_running<T>(manager: &Program, future: impl Future<Output = T>) -> Result<T> {
    tokio::select! {
        biased;
        output = future => Ok(output),
        status = manager.process.ended() => {
            bail!("the manager ended, {status}: {}", manager.process.log_tail(LINES))
        }
    }
}

/// Submits Jobs at once, and waits until all run. Returns how many per second.
pub(super) async fn dispatch(
    fleet: &AgentFleet,
    manager: &Program,
    workloads: usize,
) -> Result<f64> {
    let mut follow = fleet.hub.follow(JOBS);
    let begun = Instant::now();
    let mut running = HashSet::new();
    // In parts: the store keeps a limited number of changes.
    let mut next = 0;
    while running.len() < workloads {
        while next < workloads && next < running.len() + 10_000 {
            hub::submit(&fleet.hub, next)?;
            next += 1;
        }
        for (key, job) in changes(&mut follow, manager, running.len()).await? {
            if job.is_some_and(|job| runs(&job)) {
                running.insert(key);
            }
        }
    }
    Ok(rate(workloads, begun.elapsed()))
}

/// Submits one more Job and waits until it runs.
pub(super) async fn dispatch_one(
    fleet: &AgentFleet,
    manager: &Program,
    plan: &AgentFleetPlan,
) -> Result<()> {
    let number = plan.workloads;
    hub::submit(&fleet.hub, number)?;
    let key = hub::key(number);
    let job_runs = || fleet.hub.get(JOBS, &key).is_some_and(|job| runs(&job));
    until(manager, ("a Job runs", plan.within), job_runs).await
}

/// Whether the only pod of a Job runs.
fn runs(job: &Value) -> bool {
    job["status"]["active"] == 1
}

/// What was measured about changes of status.
pub(super) struct StatusRate {
    pub(super) per_second: f64,
    pub(super) slowest: Duration,
}

/// Changes the status of Jobs on their workers, and waits until the hub shows all changes.
pub(super) async fn statuses(
    fleet: &AgentFleet,
    manager: &Program,
    plan: &AgentFleetPlan,
) -> Result<StatusRate> {
    let places = places(fleet);
    ensure!(places.len() >= plan.changes, "{} Jobs run on workers", places.len());
    let mut follow = fleet.hub.follow(JOBS);
    let begun = Instant::now();
    let period = Duration::from_secs(1) / plan.per_second;
    let mut sent: HashMap<Box<str>, Instant> = HashMap::new();
    let (mut arrived, mut slowest) = (0, Duration::ZERO);
    let mut waiting = places.iter().take(plan.changes).enumerate().peekable();
    while arrived < plan.changes {
        let now = Instant::now();
        while let Some((number, (key, worker))) = waiting.next_if(|(number, _)| {
            begun + period * u32::try_from(*number).unwrap_or(u32::MAX) <= now
        }) {
            let status = json!({"status": {"ready": 1}});
            fleet.workers[*worker]
                .merge(JOBS, key, status)
                .with_context(|| format!("change {number}"))?;
            sent.insert(key.clone(), Instant::now());
        }
        let wake = match waiting.peek() {
            Some(_) => now + Duration::from_millis(5),
            None => now + STALLED,
        };
        let changed = while_running(manager, timeout_at(wake.into(), follow.next())).await?;
        let changed = changed.unwrap_or_else(|_| Ok(Vec::new()))?;
        if changed.is_empty() && waiting.peek().is_none() {
            bail!("{arrived} changes on the hub: {}", manager.process.log_tail(LINES));
        }
        for (key, job) in changed {
            if job.is_some_and(|job| job["status"]["ready"] == 1)
                && let Some(at) = sent.remove(&key)
            {
                (arrived, slowest) = (arrived + 1, slowest.max(at.elapsed()));
            }
        }
    }
    Ok(StatusRate { per_second: rate(plan.changes, begun.elapsed()), slowest })
}

/// Where Jobs run, in turn: one of each worker, then the next.
fn places(fleet: &AgentFleet) -> Vec<(Box<str>, usize)> {
    let mut of_workers: Vec<_> =
        fleet.workers.iter().map(|worker| worker.keys(JOBS).into_iter()).collect();
    let mut places = Vec::new();
    loop {
        let before = places.len();
        for (number, keys) in of_workers.iter_mut().enumerate() {
            places.extend(keys.next().map(|key| (key, number)));
        }
        if places.len() == before {
            return places;
        }
    }
}

/// The next changes of Jobs on the hub.
async fn changes(
    follow: &mut DoubleFollow,
    manager: &Program,
    running: usize,
) -> Result<Vec<DoubleChange>> {
    let stalled = || format!("{running} Jobs run: {}", manager.process.log_tail(LINES));
    let changes = while_running(manager, timeout(STALLED, follow.next())).await?;
    Ok(changes.with_context(stalled)??)
}

#[expect(clippy::cast_precision_loss, reason = "thousands")]
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use harness::Launch;

    use super::*;

    #[tokio::test]
    async fn the_end_of_the_manager_ends_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::of("sh").built_in(Some("/bin".into())).args(["-c", "exit 3"]);
        let process = launch.start_in(folder.path()).unwrap();
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let manager = Program { process, metrics: nowhere, health: nowhere };
        let waited = until(&manager, ("it never is", Duration::from_secs(60)), || false).await;
        let error = waited.unwrap_err().to_string();
        assert!(error.contains("the manager ended, exit status: 3"), "{error}");
    }
}
