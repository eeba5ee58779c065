//! What the demo plays on: an installation from `config/` and the samples, on two unequal workers.

use anyhow::Result;
use crds::{
    meta::is_true,
    names::conditions::ACTIVE,
    v1beta2::{ClusterQueue, MultiKueueCluster},
};
use e2e::world::{self, Plan, Ports, Program, SOON, World};
use harness::{Cluster, NodeSpec, TestLab};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;

use crate::stopwatch::Stopwatch;

/// Replicas of the manager.
const MANAGERS: usize = 2;

/// Worker clusters.
pub(crate) const WORKERS: usize = 2;

/// The team of the samples, and so the namespace of its Jobs.
pub(crate) const TEAM: &str = "team-a";

/// Nodes of the workers in their order: how many, cpu, memory. The samples' gang fits on the first only.
const NODES: [(usize, &str, &str); WORKERS] = [(4, "32", "256Gi"), (3, "16", "64Gi")];

/// The stage, with everybody on it.
pub(crate) struct Stage<'a> {
    pub(crate) world: World<'a>,
    _programs: Vec<Program>,
}

impl<'a> Stage<'a> {
    /// Installs, starts two managers and an agent per worker, registers the workers, applies the samples.
    pub(crate) async fn set(lab: &'a TestLab, watch: &mut Stopwatch) -> Result<Self> {
        let plan = Plan { workers: WORKERS, elects: true };
        let world = World::of(lab, plan, Ports::choose()?).await?.patient();
        println!("installing config/default on the manager, config/worker on the workers");
        world.install().await?;
        watch.lap("installing");
        let mut programs = Vec::new();
        for number in 0..MANAGERS {
            programs.push(world.manager(number == 0, &[]).await?);
        }
        world.register().await?;
        for (worker, (count, cpu, memory)) in world.workers.iter().zip(NODES) {
            println!("{}: {count} nodes of {cpu} cpus and {memory}", worker.name());
            worker.add_nodes(&nodes(count, cpu, memory)).await?;
            programs.push(world.agent(worker, &[]).await?);
        }
        watch.lap("managers, agents, nodes");
        println!("applying config/samples/multikueue");
        samples(&world).await?;
        watch.lap("samples, workers connected");
        Ok(Self { world, _programs: programs })
    }

    /// Everywhere: the manager first.
    pub(crate) fn clusters(&self) -> Vec<Cluster> {
        std::iter::once(&self.world.hub).chain(&self.world.workers).cloned().collect()
    }
}

fn nodes(count: usize, cpu: &str, memory: &str) -> NodeSpec {
    let (cpu, memory) = (cpu.to_owned(), memory.to_owned());
    NodeSpec { count, cpu, memory, ..NodeSpec::default() }
}

/// The queue on the manager, the team's namespace everywhere; returns when the queue takes Jobs.
async fn samples(world: &World<'_>) -> Result<()> {
    let folder = world::root().join("config/samples/multikueue");
    world.hub.apply_kustomization(&folder, TEAM).await?;
    for worker in &world.workers {
        worker.apply_kustomization(&folder.join("namespace"), TEAM).await?;
        // Without it no pod can be made.
        let accounts: Api<ServiceAccount> = worker.api(TEAM);
        worker.until(&accounts, "default", "is there", SOON, |_| true).await?;
    }
    let clusters: Api<MultiKueueCluster> = world.hub.cluster_api();
    let active = |cluster: &MultiKueueCluster| is_true(&cluster.status.conditions, ACTIVE);
    for worker in &world.workers {
        world.hub.until(&clusters, worker.name(), "is connected", SOON, active).await?;
    }
    let queues: Api<ClusterQueue> = world.hub.cluster_api();
    let active = |queue: &ClusterQueue| is_true(&queue.status.conditions, ACTIVE);
    world.hub.until(&queues, TEAM, "takes Jobs", SOON, active).await?;
    Ok(())
}
