//! The installation on real nodes that the tests share.

use anyhow::Result;
use e2e::installation::{Installation, InstallationPlan, InstallationPorts, Program};
use harness::{Component, LabPlan, TestLab};
use lab::real_nodes::node::RealNodeCounts;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

const PLAN: InstallationPlan = InstallationPlan { workers: 2, elects: false };

/// Of the nodes of a worker, the first is for all tests, each of the others for one that breaks it.
const NODES: RealNodeCounts = RealNodeCounts { manager: 0, each_worker: 3, more_of_last: 0 };

/// A node without heartbeats for this long is not ready. Kubelets of a lab send one every ten seconds.
const GRACE_PERIOD: &str = "--node-monitor-grace-period=25s";

/// Control planes, manager and agents.
pub(crate) struct SharedInstallation {
    pub(crate) lab: TestLab,
    ports: InstallationPorts,
    /// The manager and the agents, in the order of their workers.
    programs: Mutex<Vec<Program>>,
}

static SHARED: OnceCell<SharedInstallation> = OnceCell::const_new();

impl SharedInstallation {
    pub(crate) async fn get() -> Result<&'static Self> {
        SHARED.get_or_try_init(Self::build).await
    }

    async fn build() -> Result<Self> {
        let plan = LabPlan { workers: PLAN.workers, audit: false };
        let lab = TestLab::start_with_real_nodes(plan, NODES).await?;
        let shared =
            Self { lab, ports: InstallationPorts::choose()?, programs: Mutex::new(Vec::new()) };
        let installation = shared.installation().await?;
        installation.install().await?;
        shared.start_programs().await?;
        installation.register().await?;
        for worker in &installation.workers {
            worker.restart_with(Component::ControllerManager, &[GRACE_PERIOD]).await?;
        }
        drop(installation);
        Ok(shared)
    }

    /// Clients of this test's runtime.
    pub(crate) async fn installation(&self) -> Result<Installation<'_>> {
        Installation::of(&self.lab, PLAN, self.ports).await
    }

    /// Kills manager and agents without a warning, and starts them again.
    pub(crate) async fn crash_programs(&self) -> Result<()> {
        for program in self.programs.lock().await.drain(..) {
            program.process.kill().await?;
        }
        self.start_programs().await
    }

    async fn start_programs(&self) -> Result<()> {
        let installation = self.installation().await?;
        let mut programs = self.programs.lock().await;
        programs.push(installation.first_manager_with(&settings()).await?);
        for worker in &installation.workers {
            programs.push(installation.agent(worker, &[]).await?);
        }
        Ok(())
    }
}

/// A pod is ready after a few seconds. One of a failing image, or of a lost node, never is.
fn settings() -> Value {
    json!({
        "integrations": {"frameworks": ["batch/job", "pod"]},
        "waitForPodsReady": {
            "timeout": "40s", "recoveryTimeout": "30s",
            "requeuingStrategy": {"backoffBaseSeconds": 1},
        },
    })
}
