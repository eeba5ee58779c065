//! The environment of the demo: an installation from `config/` with the samples, and two unequal workers.

use anyhow::{Context, Result};
use crds::{
    meta::is_true,
    names::conditions::ACTIVE,
    v1beta2::{ClusterQueue, MultiKueueCluster},
};
use e2e::installation::{
    self, Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT,
};
use harness::{Cluster, NodeSpec, PlayedOperator, RayHeads, TestLab};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;

use crate::mixture;
use crate::stopwatch::Stopwatch;

/// Replicas of the manager.
const MANAGERS: usize = 2;

/// Worker clusters.
pub(crate) const WORKERS: usize = 2;

/// The team of the samples, and so the namespace of its Jobs.
pub(crate) const TEAM: &str = "team-a";

/// Nodes of the workers in their order: how many, cpu, memory. The samples' gang fits on the first only.
const NODES: [(usize, &str, &str); WORKERS] = [(4, "32", "256Gi"), (3, "16", "64Gi")];

/// The environment with its running programs.
pub(crate) struct DemoEnvironment<'a> {
    pub(crate) installation: Installation<'a>,
    _programs: Vec<Program>,
    _heads: RayHeads,
    _operators: Vec<PlayedOperator>,
}

impl<'a> DemoEnvironment<'a> {
    /// Installs, starts two managers and an agent per worker, registers the workers, applies the samples.
    pub(crate) async fn set(lab: &'a TestLab, watch: &mut Stopwatch) -> Result<Self> {
        let plan = InstallationPlan { workers: WORKERS, elects: true };
        let heads = RayHeads::start().context("playing Ray heads")?;
        let installation = Installation::of(lab, plan, InstallationPorts::choose()?).await?;
        let installation = installation.patient().with_operators(heads.proxy());
        println!("installing config/default on the manager, config/worker on the workers");
        installation.install().await?;
        mixture::install(&installation.hub, &installation.workers).await?;
        watch.lap("installing");
        let mut programs = Vec::new();
        for number in 0..MANAGERS {
            let blocks = mixture::configuration();
            programs.push(match number {
                0 => installation.first_manager_with(&blocks).await?,
                _ => installation.further_manager_with(&blocks).await?,
            });
        }
        installation.register().await?;
        for (worker, (count, cpu, memory)) in installation.workers.iter().zip(NODES) {
            println!("{}: {count} nodes of {cpu} cpus and {memory}", worker.name());
            worker.add_nodes(&nodes(count, cpu, memory)).await?;
            programs.push(installation.agent(worker, &[]).await?);
        }
        watch.lap("managers, agents, nodes");
        println!("applying config/samples/multikueue");
        samples(&installation).await?;
        watch.lap("samples, workers connected");
        let operators = mixture::operators(&installation.workers)?;
        Ok(Self { installation, _programs: programs, _heads: heads, _operators: operators })
    }

    /// Everywhere: the manager first.
    pub(crate) fn clusters(&self) -> Vec<Cluster> {
        std::iter::once(&self.installation.hub).chain(&self.installation.workers).cloned().collect()
    }
}

fn nodes(count: usize, cpu: &str, memory: &str) -> NodeSpec {
    let (cpu, memory) = (cpu.to_owned(), memory.to_owned());
    NodeSpec { count, cpu, memory, ..NodeSpec::default() }
}

/// Creates the queue on the manager and the team's namespace everywhere, and waits until the queue is active.
async fn samples(installation: &Installation<'_>) -> Result<()> {
    let folder = installation::root().join("config/samples/multikueue");
    installation.hub.apply_kustomization(&folder, TEAM).await?;
    for worker in &installation.workers {
        worker.apply_kustomization(&folder.join("namespace"), TEAM).await?;
        // Pods need the service account.
        let accounts: Api<ServiceAccount> = worker.api(TEAM);
        worker.until(&accounts, "default", "is there", TIMEOUT, |_| true).await?;
    }
    let clusters: Api<MultiKueueCluster> = installation.hub.cluster_api();
    let active = |cluster: &MultiKueueCluster| is_true(&cluster.status.conditions, ACTIVE);
    for worker in &installation.workers {
        installation.hub.until(&clusters, worker.name(), "is connected", TIMEOUT, active).await?;
    }
    let queues: Api<ClusterQueue> = installation.hub.cluster_api();
    let active = |queue: &ClusterQueue| is_true(&queue.status.conditions, ACTIVE);
    installation.hub.until(&queues, TEAM, "takes Jobs", TIMEOUT, active).await?;
    Ok(())
}
