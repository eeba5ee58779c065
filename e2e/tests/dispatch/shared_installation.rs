//! The shared installations: one for tests that run in parallel, one with agents that ask an autoscaler for nodes, and two for tests with faults, which have one of them at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use e2e::installation::{
    Installation, InstallationPlan, InstallationPorts, NAMESPACE, Program, root,
};
use harness::{LabPlan, TestLab};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

/// The kind that an autoscaler serves.
const PROVISIONING_REQUESTS: &str = include_str!("../provisioning/provisioning-request-crd.yaml");

/// A lab with two workers and the installation on it.
pub(crate) struct SharedInstallation {
    pub(crate) lab: TestLab,
    ports: InstallationPorts,
    /// The manager that answers the webhooks. Not there while a test that is alone has it; it puts another back.
    pub(crate) manager: Mutex<Option<Program>>,
    _agents: Vec<Program>,
}

const PLAN: InstallationPlan = InstallationPlan { workers: 2, elects: true };

static SHARED: OnceCell<SharedInstallation> = OnceCell::const_new();
/// Such a test waits most of the time, so that two at once take half as long.
static ALONE: [OnceCell<SharedInstallation>; 2] = [OnceCell::const_new(), OnceCell::const_new()];

impl SharedInstallation {
    /// For tests that run in parallel.
    pub(crate) async fn shared() -> Result<&'static Self> {
        SHARED.get_or_try_init(Self::build).await
    }

    /// For a test with faults. The tests take the installations in turn.
    pub(crate) async fn alone() -> Result<&'static Self> {
        static TESTS: AtomicUsize = AtomicUsize::new(0);
        let test = TESTS.fetch_add(1, Ordering::Relaxed);
        ALONE[test % ALONE.len()].get_or_try_init(Self::build).await
    }

    /// The installation, with clients of this test's own.
    pub(crate) async fn installation(&'static self) -> Result<Installation<'static>> {
        Installation::of(&self.lab, PLAN, self.ports).await
    }

    /// With agents that ask an autoscaler for nodes, and the kind by which they do.
    pub(crate) async fn asking() -> Result<&'static Self> {
        static ASKING: OnceCell<SharedInstallation> = OnceCell::const_new();
        let block = json!({"provisioningRequest": {"provisioningClassName": "atomic.lab"}});
        ASKING.get_or_try_init(|| Self::build_with(block)).await
    }

    async fn build() -> Result<Self> {
        Self::build_with(Value::Null).await
    }

    /// With these blocks in the configuration of agents.
    async fn build_with(blocks: Value) -> Result<Self> {
        let lab = TestLab::start(LabPlan { workers: PLAN.workers, audit: true }).await?;
        let ports = InstallationPorts::choose()?;
        let installation = Installation::of(&lab, PLAN, ports).await?;
        installation.install().await?;
        let manager = installation.manager(true, &[]).await?;
        installation.register().await?;
        let mut agents = Vec::new();
        for worker in &installation.workers {
            if !blocks.is_null() {
                worker.apply(PROVISIONING_REQUESTS, "default").await?;
                worker
                    .apply_kustomization(&root().join("config/worker/provisioning"), NAMESPACE)
                    .await?;
            }
            agents.push(installation.agent_with(worker, &blocks, &[]).await?);
        }
        drop(installation);
        Ok(Self { lab, ports, manager: Mutex::new(Some(manager)), _agents: agents })
    }
}
