//! A whole installation on the lab: what users apply, managers and agents with their own rights, workers registered.
//!
//! Tests, the demo and benchmarks stand on it. Programs run beside the lab instead of in it; all else is as a user has it.

mod install;
mod programs;
mod register;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use harness::{Cluster, Process, TestLab, free_port, secs};
use serde_json::Value;

pub use install::root;
pub use programs::Program;

/// The namespace of managers and agents.
pub const NAMESPACE: &str = "kueue-system";

/// Two cores with other work on them are slow.
pub const SOON: Duration = secs(60);

/// What is to be there.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Worker clusters that are registered.
    pub workers: usize,
    /// Whether managers elect a leader. Without, a new one goes on at once after the death of the last.
    pub elects: bool,
}

/// An installation. Clients belong to the runtime that made it; programs do not.
pub struct World<'a> {
    /// The control planes.
    pub lab: &'a TestLab,
    /// The cluster that people submit to.
    pub hub: Cluster,
    /// Its workers.
    pub workers: Vec<Cluster>,
    plan: Plan,
    ports: Ports,
    /// Managers give up their lease after seconds, as tests of a failover want it.
    hasty: bool,
    /// Where the programs are taken from, if they are another build than whoever starts them.
    build: Option<PathBuf>,
}

/// Where the first manager's webhooks listen; the API server is told once.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    webhooks: u16,
}

impl Ports {
    /// Free ports.
    ///
    /// # Errors
    /// If there are none.
    pub fn choose() -> Result<Self> {
        Ok(Self { webhooks: free_port()? })
    }
}

impl<'a> World<'a> {
    /// Clients for an installation that is there, or is about to be made with [`Self::install`].
    ///
    /// # Errors
    /// If the lab has fewer workers.
    pub async fn of(lab: &'a TestLab, plan: Plan, ports: Ports) -> Result<Self> {
        let hub = lab.cluster("manager").await?;
        let mut workers = Vec::new();
        for number in 1..=plan.workers {
            workers.push(lab.cluster(&format!("worker-{number}")).await?);
        }
        Ok(Self { lab, hub, workers, plan, ports, hasty: true, build: None })
    }

    /// The same with leases of the length that is shipped. On a machine that is as busy as a burst makes it, a hasty leader
    /// may miss its own deadline, and ends.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { hasty: false, ..self }
    }

    /// The same with programs of another build, which say no more than they do by default.
    #[must_use]
    pub fn built_in(self, folder: PathBuf) -> Self {
        Self { build: Some(folder), ..self }
    }

    /// Applies what users apply, on the hub and on every worker, and registers the workers.
    ///
    /// # Errors
    /// If an API server refuses something.
    pub async fn install(&self) -> Result<()> {
        install::hub(&self.hub, self.ports.webhooks).await.context("installing on the hub")?;
        for worker in &self.workers {
            install::worker(worker)
                .await
                .with_context(|| format!("installing on {}", worker.name()))?;
        }
        Ok(())
    }

    /// Registers every worker under its name, as a user does.
    ///
    /// # Errors
    /// If an API server refuses something.
    pub async fn register(&self) -> Result<()> {
        for worker in &self.workers {
            register::worker(&self.hub, worker).await?;
        }
        Ok(())
    }

    /// Starts a manager. The first one answers the webhooks.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn manager(&self, first: bool, environment: &[(&str, &str)]) -> Result<Program> {
        self.manager_with(first, &Value::Null, environment).await
    }

    /// Starts a manager whose configuration also has these blocks.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn manager_with(
        &self,
        first: bool,
        blocks: &Value,
        environment: &[(&str, &str)],
    ) -> Result<Program> {
        let webhooks = if first { self.ports.webhooks } else { free_port()? };
        programs::manager(self, webhooks, blocks, environment).await
    }

    /// Starts an agent on a worker.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn agent(&self, worker: &Cluster, environment: &[(&str, &str)]) -> Result<Program> {
        self.agent_with(worker, &Value::Null, environment).await
    }

    /// Starts an agent whose configuration also has these blocks.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn agent_with(
        &self,
        worker: &Cluster,
        blocks: &Value,
        environment: &[(&str, &str)],
    ) -> Result<Program> {
        programs::agent(self, worker, blocks, environment).await
    }

    fn file(&self, name: &str) -> PathBuf {
        self.lab.state().directory.join(name)
    }
}

/// A process, ended when it is dropped.
pub type Running = Process;
