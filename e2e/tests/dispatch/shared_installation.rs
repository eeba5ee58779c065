//! The shared installations: one for tests that run in parallel, and two for tests with faults, which have one of them at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use e2e::installation::{Installation, InstallationPlan, InstallationPorts, Program};
use harness::{LabPlan, TestLab};
use tokio::sync::{Mutex, OnceCell};

/// A lab with two workers and the installation on it.
pub(crate) struct SharedInstallation {
    pub(crate) lab: TestLab,
    ports: InstallationPorts,
    /// The manager that answers the webhooks. Not there while a test that is alone has it; it puts another back.
    pub(crate) manager: Mutex<Option<Program>>,
    /// The agents of the workers, in order. A test that is alone may put others in their place; it puts these back.
    pub(crate) agents: Mutex<Vec<Program>>,
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

    async fn build() -> Result<Self> {
        let lab = TestLab::start(LabPlan { workers: PLAN.workers, audit: true }).await?;
        let ports = InstallationPorts::choose()?;
        let installation = Installation::of(&lab, PLAN, ports).await?;
        installation.install().await?;
        let manager = installation.first_manager().await?;
        installation.register().await?;
        let mut agents = Vec::new();
        for worker in &installation.workers {
            agents.push(installation.agent(worker, &[]).await?);
        }
        drop(installation);
        Ok(Self { lab, ports, manager: Mutex::new(Some(manager)), agents: Mutex::new(agents) })
    }
}
