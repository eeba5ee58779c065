//! A manager with hundreds of workers: the shipped program against API servers in memory ([`crate::api_double`]).
//!
//! The hub is a double as well: etcd and API server of one control plane would be measured instead of the manager. Nothing
//! admits but the manager and the agents of the workers, which are doubles too ([`agents`]): an agent admits what its worker
//! is given, starts its Jobs, and reports its room as `sluice-agent` does.
//!
//! 1. Jobs are submitted at once, and each runs on some worker.
//! 2. Statuses of running Jobs change on the workers, at a given rate, until the hub shows all of them.
//! 3. The manager is killed and started again: all workers have their watches, and one more Job is dispatched.

mod agents;
mod hub;
mod measure;
mod program;

use std::{
    convert::Infallible,
    future::pending,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    api_double::{ApiDouble, DoubleCluster},
    usage::ProcessUsage,
};

/// The Jobs of every double.
const JOBS: &str = "batch/jobs";
/// The Workloads of every double.
const WORKLOADS: &str = "kueue.x-k8s.io/workloads";
/// The reports of workers.
const REPORTS: &str = "sluice.dev/clustercapacities";

/// What a worker serves.
const SERVED: [&str; 5] = [JOBS, WORKLOADS, REPORTS, "/namespaces", "coordination.k8s.io/leases"];

/// What the manager watches on each worker.
const WATCHED: [&str; 3] = [JOBS, WORKLOADS, REPORTS];

/// How large the fleet is, and what it does.
#[derive(Clone, Debug)]
pub struct AgentFleetPlan {
    /// Workers with an agent each.
    pub agents: usize,
    /// Jobs, of one pod each.
    pub workloads: usize,
    /// Jobs of which the status changes; at most all of them.
    pub changes: usize,
    /// Changes per second that are offered.
    pub per_second: u32,
    /// For each of the steps.
    pub within: Duration,
    /// The folder of the manager, if not that of the running program.
    pub programs: Option<PathBuf>,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct AgentFleetReport {
    /// Jobs per second from the submission of all to the status of the last on the hub.
    pub dispatched_per_second: f64,
    /// Changes of status per second from the first on a worker to the last on the hub.
    pub statuses_per_second: f64,
    /// The time from a change on a worker to the hub, at most.
    pub slowest_status: Duration,
    /// Resident memory of the manager while all Jobs run.
    pub resident_bytes: u64,
    /// Its resident memory once it runs again after its end.
    pub restarted_bytes: u64,
    /// CPU seconds of the manager until all Jobs ran, and during the changes of status.
    pub cpu_seconds: (f64, f64),
    /// From the start of a new manager until all workers are watched and a Job is dispatched.
    pub reconnected: Duration,
    /// Workers that run something.
    pub used_workers: usize,
}

/// The agents of a fleet. They end with it, and none ends by itself.
type FleetAgents = JoinSet<Result<Infallible>>;

/// The doubles of a fleet.
struct AgentFleet {
    double: ApiDouble,
    hub: Arc<DoubleCluster>,
    workers: Vec<Arc<DoubleCluster>>,
}

impl AgentFleet {
    async fn start(n_agents: usize, quota: usize) -> Result<(Self, FleetAgents)> {
        let double = ApiDouble::start().await?;
        let hub = double.add("hub", &[]);
        hub::furnish(&hub, quota)?;
        let mut fleet = Self { double, hub, workers: Vec::new() };
        let mut agents = FleetAgents::new();
        for number in 1..=n_agents {
            let worker = fleet.double.add(&format!("worker-{number}"), &SERVED);
            agents::furnish(&worker, quota)?;
            hub::register(&fleet.hub, worker.name(), &fleet.double.kubeconfig(worker.name()))?;
            agents.spawn(agents::run(Arc::clone(&worker), quota));
            fleet.workers.push(worker);
        }
        hub::configure(&fleet.hub, &fleet.workers)?;
        Ok((fleet, agents))
    }

    /// Whether the manager watches everything on every worker.
    fn is_watched(&self) -> bool {
        self.open_watches().all(|open| open > 0)
    }

    /// Whether nothing is watched on any worker.
    fn is_deserted(&self) -> bool {
        self.open_watches().all(|open| open == 0)
    }

    /// How many watches are open, for each worker and resource.
    fn open_watches(&self) -> impl Iterator<Item = usize> {
        self.workers.iter().flat_map(|worker| WATCHED.map(|one| worker.open_watches(one)))
    }
}

/// Runs all steps.
///
/// # Errors
/// If the manager does not start, or it or an agent ends, or a step does not end in time.
pub async fn run(plan: &AgentFleetPlan) -> Result<AgentFleetReport> {
    // One more for the Job after the restart.
    let (fleet, agents) = AgentFleet::start(plan.agents, plan.workloads + 1).await?;
    tokio::select! {
        report = steps(&fleet, plan) => report,
        error = ended(agents) => Err(error),
    }
}

/// Waits until an agent ends. Gives why.
async fn ended(mut agents: FleetAgents) -> anyhow::Error {
    match agents.join_next().await {
        Some(Ok(Err(error))) => error.context("an agent ended"),
        Some(Err(error)) => error.into(),
        None => pending().await,
    }
}

async fn steps(fleet: &AgentFleet, plan: &AgentFleetPlan) -> Result<AgentFleetReport> {
    let folder = tempfile::tempdir()?;
    let programs = plan.programs.as_deref();
    let manager = program::start(fleet, folder.path(), programs).await?;
    let watched = ("all workers are watched", plan.within);
    measure::until(&manager, watched, || fleet.is_watched()).await?;
    let begun = ProcessUsage::of(manager.process.pid())?;
    let dispatched_per_second = measure::dispatch(fleet, &manager, plan.workloads).await?;
    let dispatched = ProcessUsage::of(manager.process.pid())?;
    let statuses = measure::statuses(fleet, &manager, plan).await?;
    let ended = ProcessUsage::of(manager.process.pid())?;
    manager.process.kill().await?;
    let deserted = timeout(plan.within, measure::holds(|| fleet.is_deserted())).await;
    deserted.context("a killed manager still watches workers")?;
    let (reconnected, restarted_bytes) = reconnect(fleet, folder.path(), plan).await?;
    let used = fleet.workers.iter().filter(|worker| !worker.keys(JOBS).is_empty());
    Ok(AgentFleetReport {
        dispatched_per_second,
        statuses_per_second: statuses.per_second,
        slowest_status: statuses.slowest,
        resident_bytes: ended.resident_bytes,
        restarted_bytes,
        cpu_seconds: (dispatched.cpu_since(&begun), ended.cpu_since(&dispatched)),
        reconnected,
        used_workers: used.count(),
    })
}

/// Starts another manager. Returns the time until it dispatches with all workers, and its memory then.
async fn reconnect(
    fleet: &AgentFleet,
    folder: &Path,
    plan: &AgentFleetPlan,
) -> Result<(Duration, u64)> {
    let begun = std::time::Instant::now();
    let manager = program::start(fleet, folder, plan.programs.as_deref()).await?;
    let watched = ("all workers are watched again", plan.within);
    measure::until(&manager, watched, || fleet.is_watched()).await?;
    measure::dispatch_one(fleet, &manager, plan).await?;
    Ok((begun.elapsed(), ProcessUsage::of(manager.process.pid())?.resident_bytes))
}
