//! One cluster with a manager that tests share, and may start again.

use anyhow::Result;
use harness::{LabPlan, TestLab};
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::installation::{Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT};

const PLAN: InstallationPlan = InstallationPlan { workers: 0, elects: false };

/// One cluster with a manager that tests share.
pub struct ManagerLab {
    lab: TestLab,
    ports: InstallationPorts,
    configuration: Value,
    /// Tests use it side by side, and one at a time starts another one.
    manager: RwLock<Option<Program>>,
}

/// Keeps the manager from being started again.
pub type KeptManager<'a> = RwLockReadGuard<'a, Option<Program>>;

impl ManagerLab {
    /// Installs everything, and starts a manager with these integrations.
    ///
    /// # Errors
    /// If the control plane or the manager does not start.
    pub async fn start(frameworks: &[&str]) -> Result<Self> {
        Self::start_with(json!({"integrations": {"frameworks": frameworks}})).await
    }

    /// Installs everything, and starts a manager with this configuration.
    ///
    /// # Errors
    /// If the control plane or the manager does not start.
    pub async fn start_with(configuration: Value) -> Result<Self> {
        let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
        let ports = InstallationPorts::choose()?;
        let this = Self { lab, ports, configuration, manager: RwLock::new(None) };
        let installation = this.installation().await?;
        installation.install().await?;
        let manager = this.manager_of(&installation).await?;
        drop(installation);
        *this.manager.write().await = Some(manager);
        Ok(this)
    }

    /// The installation, with clients of the present runtime.
    ///
    /// # Errors
    /// If a client cannot be made.
    pub async fn installation(&self) -> Result<Installation<'_>> {
        Installation::of(&self.lab, PLAN, self.ports).await
    }

    /// Keeps the manager until this value is dropped.
    pub async fn keep_manager(&self) -> KeptManager<'_> {
        self.manager.read().await
    }

    /// Ends the manager, once no test keeps it, and starts another one.
    ///
    /// # Errors
    /// If a manager does not end or start.
    pub async fn restart_manager(
        &self,
        installation: &Installation<'_>,
    ) -> Result<KeptManager<'_>> {
        let mut manager = self.manager.write().await;
        if let Some(old) = manager.take() {
            old.process.terminate(TIMEOUT).await?;
        }
        *manager = Some(self.manager_of(installation).await?);
        Ok(RwLockWriteGuard::downgrade(manager))
    }

    async fn manager_of(&self, installation: &Installation<'_>) -> Result<Program> {
        installation.first_manager_with(&self.configuration).await
    }
}
