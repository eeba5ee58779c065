//! Two managers under a steady load of Jobs and pods, with faults: the leader is killed at random, and the API server hangs.
//!
//! | file | concept |
//! |---|---|
//! | `replicas` | two managers, as a Deployment runs them |
//! | `load` | Jobs, pods and a group that are submitted while faults happen |
//! | `quota` | what objects hold, while the run goes on and compared with the status of queues in its end |
//! | `random` | pauses between kills |
//!
//! What ran is judged by the ledger of the observer, which does not read anything that a manager writes.

mod load;
mod quota;
mod random;
mod replicas;

use std::{
    ops::RangeInclusive,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use harness::{
    Component, LabPlan, Ledger, NodeSpec, Observer, RunVerdict, TestLab, make_namespace, secs,
};

use self::{
    load::{JobsAndPods, SubmittedWork},
    quota::QuotaObserver,
    random::Random,
    replicas::ManagerReplicas,
};
use crate::installation::{Installation, InstallationPlan, InstallationPorts, TIMEOUT};

/// The namespace of all jobs.
const NAME: &str = "faults";

/// What runs, and what breaks.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// Jobs per minute, and as many pods. Each has one pod that runs for a second.
    pub per_minute: u32,
    /// For how long they are submitted.
    pub lasts: Duration,
    /// Seconds from one kill of the leader to the next.
    pub kill_every: RangeInclusive<u64>,
    /// For how long the API server hangs, once.
    pub outage: Duration,
    /// Members of the group of pods.
    pub group: usize,
    /// Of the random numbers.
    pub seed: u64,
    /// The folder of the programs, if not that of the running one.
    pub programs: Option<PathBuf>,
}

/// What happened. All work ran once, or there is no report.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultReport {
    /// Jobs and pods, without the group.
    pub submitted: usize,
    /// Requests that were sent again, because no webhook or no API server answered.
    pub sent_again: usize,
    /// Kills of a leader.
    pub kills: usize,
    /// Managers that ended by themselves, because they lost the lease.
    pub resigned: usize,
    /// The longest time without an admission while jobs were submitted.
    pub longest_pause: Duration,
    /// From the last submission to the end of all work.
    pub drained_in: Duration,
}

/// Runs the plan on a lab of its own.
///
/// # Errors
/// If some work did not run exactly once, quota was exceeded, or the status of a queue differs from the objects in the end.
pub async fn run(plan: &FaultPlan) -> Result<FaultReport> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let of = InstallationPlan { workers: 0, elects: true };
    let installation = Installation::of(&lab, of, InstallationPorts::choose()?).await?;
    let installation = match &plan.programs {
        Some(folder) => installation.built_in(folder.clone()),
        None => installation,
    };
    installation.install().await?;
    let mut replicas = ManagerReplicas::start(&installation).await?;
    let run = Box::pin(run_with(plan, &installation, &mut replicas)).await;
    run.with_context(|| format!("seed {}; the managers:\n{}", plan.seed, replicas.log_tails()))
}

async fn run_with(
    plan: &FaultPlan,
    installation: &Installation<'_>,
    replicas: &mut ManagerReplicas<'_>,
) -> Result<FaultReport> {
    let hub = &installation.hub;
    prepare(installation, plan.group).await?;
    let observer = Observer::start(std::slice::from_ref(hub), NAME, TIMEOUT).await?;
    let held_quota = QuotaObserver::start(hub.api(NAME), quota::COHORT);
    let load = JobsAndPods::new(hub, NAME);
    let mut random = Random::new(plan.seed);
    let submitted = tokio::select! {
        submitted = under_load(plan, installation, &load) => submitted?,
        broken = replicas.disturb(&mut random, &plan.kill_every) => match broken? {},
    };
    let longest_pause = held_quota.longest_pause();
    let ended = Instant::now();
    tokio::select! {
        finished = load.until_finished(&submitted) => finished?,
        broken = replicas.keep() => match broken? {},
    }
    let drained_in = ended.elapsed();
    observer.catch_up(TIMEOUT).await?;
    judge(&observer.ledger(), &submitted)?;
    held_quota.expect_within_quota()?;

    // The queues are full, and more Jobs wait, when the next leader takes over.
    tokio::select! {
        full = load.fill(quota::COHORT_CPU) => full?,
        broken = replicas.keep() => match broken? {},
    }
    replicas.kill_leader().await?;
    tokio::select! {
        agrees = quota::expect_status_of_queues(hub, NAME) => agrees?,
        broken = replicas.keep() => match broken? {},
    }
    Ok(FaultReport {
        submitted: submitted.names.len(),
        sent_again: load.sent_again(),
        kills: replicas.kills(),
        resigned: replicas.resigned(),
        longest_pause,
        drained_in,
    })
}

/// Submits everything. The API server hangs in the middle of it.
async fn under_load(
    plan: &FaultPlan,
    installation: &Installation<'_>,
    load: &JobsAndPods<'_>,
) -> Result<SubmittedWork> {
    let outage = async {
        tokio::time::sleep(plan.lasts / 2).await;
        installation.hub.pause(Component::ApiServer)?;
        tokio::time::sleep(plan.outage).await;
        anyhow::Ok(installation.hub.resume(Component::ApiServer)?)
    };
    let steady = load.steadily(plan.per_minute, plan.lasts);
    let group = async {
        tokio::time::sleep(plan.lasts / 4).await;
        load.group(plan.group).await
    };
    let (names, members, ()) = tokio::try_join!(steady, group, outage)?;
    Ok(SubmittedWork { names, members })
}

/// Namespace, queues and nodes.
async fn prepare(installation: &Installation<'_>, group: usize) -> Result<()> {
    let hub = &installation.hub;
    make_namespace(hub, NAME).await?;
    hub.apply(&quota::queues(NAME, group), NAME).await?;
    let cpu = (group + 100).to_string();
    // A simulated node takes a thousand pods.
    let nodes = NodeSpec { prefix: NAME.to_owned(), count: 4, cpu, ..NodeSpec::default() };
    Ok(hub.add_nodes(&nodes).await?)
}

/// Every Job and pod ran once: one pod started, and succeeded.
fn judge(ledger: &Ledger, submitted: &SubmittedWork) -> Result<()> {
    let all = submitted.names.iter().chain(&submitted.members);
    let judged = all.map(|name| ledger.judge(name, 1));
    let wrong: Vec<String> = judged
        .filter(|one| {
            let started = one.runs.iter().flat_map(|run| &run.pods);
            let started = started.filter(|pod| pod.started.is_some()).count();
            one.verdict != RunVerdict::Once || started != 1
        })
        .map(|one| one.to_string())
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("{} did not run once:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"))
}

impl Default for FaultPlan {
    /// Short enough for every run of the tests.
    fn default() -> Self {
        Self {
            per_minute: 200,
            lasts: secs(18),
            kill_every: 3..=7,
            outage: secs(5),
            group: 60,
            seed: 1,
            programs: None,
        }
    }
}
