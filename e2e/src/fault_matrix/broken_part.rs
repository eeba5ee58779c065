//! What fails. The agent of a worker reaches its API server directly; the manager reaches it through a proxy.

use anyhow::{Context, Result};
use harness::{Component, Fault, secs};

use super::environment::FaultEnvironment;

/// A part of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenPart {
    /// The manager is killed, and another one starts.
    Manager,
    /// The agent is killed, and another one starts.
    Agent,
    /// The API server of the worker hangs.
    WorkerApi,
    /// The store of the worker hangs; its API server answers what it needs no store for.
    WorkerStore,
    /// The API server of the hub hangs.
    HubApi,
    /// Requests of the manager reach the worker, and no answer comes back.
    CutOneWay,
    /// The manager does not reach the worker.
    CutBothWays,
    /// Everything between manager and worker takes 2 s more.
    Slow,
}

impl BrokenPart {
    /// Every part.
    pub const ALL: [Self; 8] = [
        Self::Manager,
        Self::Agent,
        Self::WorkerApi,
        Self::WorkerStore,
        Self::HubApi,
        Self::CutOneWay,
        Self::CutBothWays,
        Self::Slow,
    ];

    /// A part of names of work.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Agent => "agent",
            Self::WorkerApi => "worker-api",
            Self::WorkerStore => "worker-store",
            Self::HubApi => "hub-api",
            Self::CutOneWay => "cut-one-way",
            Self::CutBothWays => "cut-both-ways",
            Self::Slow => "slow",
        }
    }

    /// Whether nothing can be submitted meanwhile: there is no API server, or no webhook.
    pub(super) fn stops_the_hub(self) -> bool {
        matches!(self, Self::Manager | Self::HubApi)
    }

    pub(super) async fn fail(self, environment: &mut FaultEnvironment<'_>) -> Result<()> {
        match self {
            Self::Manager => {
                let manager = environment.manager.take().context("a manager")?;
                manager.process.kill().await?;
            }
            Self::Agent => {
                let agent = environment.agent.take().context("an agent")?;
                agent.process.kill().await?;
            }
            Self::WorkerApi => environment.worker()?.pause(Component::ApiServer)?,
            Self::WorkerStore => environment.worker()?.pause(Component::Etcd)?,
            Self::HubApi => environment.hub().pause(Component::ApiServer)?,
            Self::CutOneWay => environment.proxy.set(Fault::HangAnswers),
            Self::CutBothWays => environment.proxy.set(Fault::Refuse),
            Self::Slow => environment.proxy.set(Fault::Delay(secs(2))),
        }
        Ok(())
    }

    pub(super) async fn mend(self, environment: &mut FaultEnvironment<'_>) -> Result<()> {
        match self {
            Self::Manager => environment.start_manager().await?,
            Self::Agent => environment.start_agent().await?,
            Self::WorkerApi => environment.worker()?.resume(Component::ApiServer)?,
            Self::WorkerStore => environment.worker()?.resume(Component::Etcd)?,
            Self::HubApi => environment.hub().resume(Component::ApiServer)?,
            Self::CutOneWay | Self::CutBothWays | Self::Slow => {
                environment.proxy.set(Fault::None);
            }
        }
        Ok(())
    }
}
