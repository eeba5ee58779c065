//! A complete installation on the lab: manifests, managers and agents with their own service accounts, registered workers.
//!
//! Tests, the demo and benchmarks use it. Programs run beside the lab; everything else is as in a real installation.

mod install;
mod programs;
mod register;
mod servers;
mod visibility;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use harness::{Cluster, FaultProxy, Process, TestLab, free_port, secs};
use jobs::Kinds;
use kube::{Client, config::AuthInfo};
use serde_json::Value;

pub use install::{operated_kinds, root};
pub use programs::Program;
pub use register::registration;
pub use servers::first_user;

/// The namespace of managers and agents.
pub const NAMESPACE: &str = "kueue-system";

/// Two cores with other work on them are slow, and stand still at times.
pub const TIMEOUT: Duration = secs(180);

/// What is to be there.
#[derive(Clone, Copy, Debug)]
pub struct InstallationPlan {
    /// Worker clusters that are registered.
    pub workers: usize,
    /// Whether managers elect a leader. Without it a new manager starts immediately after the end of the last.
    pub elects: bool,
}

/// An installation. Its clients belong to the async runtime that created it; its programs do not.
pub struct Installation<'a> {
    /// The control planes.
    pub lab: &'a TestLab,
    /// The manager cluster.
    pub hub: Cluster,
    /// Its workers.
    pub workers: Vec<Cluster>,
    plan: InstallationPlan,
    ports: InstallationPorts,
    /// Managers use short leases, for tests of failover.
    hasty: bool,
    /// The folder of the programs, if not that of the running program.
    build: Option<PathBuf>,
    /// The proxy to Ray heads of agents that operate Ray and AppWrapper.
    head_proxy: Option<String>,
    /// How RayClusters are secured: the file that managers and agents read.
    ray_security: Option<PathBuf>,
    /// Kinds that an administrator declares, and the file with their definitions.
    declared: Option<(Kinds, PathBuf)>,
    /// Agents admit by the queues of their workers.
    queues: bool,
    /// Further flags of managers.
    flags: Vec<String>,
}

/// Ports of the first manager, which are part of the manifests.
#[derive(Clone, Copy, Debug)]
pub struct InstallationPorts {
    webhooks: u16,
    visibility: u16,
}

impl InstallationPorts {
    /// Free ports.
    ///
    /// # Errors
    /// If there are none.
    pub fn choose() -> Result<Self> {
        Ok(Self { webhooks: free_port()?, visibility: free_port()? })
    }

    /// The port of the webhooks.
    #[must_use]
    pub fn webhooks(&self) -> u16 {
        self.webhooks
    }

    /// The port of the visibility API.
    #[must_use]
    pub fn visibility(&self) -> u16 {
        self.visibility
    }
}

impl<'a> Installation<'a> {
    /// Clients for an existing installation, or for one to be created with [`Self::install`].
    ///
    /// # Errors
    /// If the lab has fewer workers.
    pub async fn of(
        lab: &'a TestLab,
        plan: InstallationPlan,
        ports: InstallationPorts,
    ) -> Result<Self> {
        let hub = lab.cluster("manager").await?;
        let mut workers = Vec::new();
        for number in 1..=plan.workers {
            workers.push(lab.cluster(&format!("worker-{number}")).await?);
        }
        Ok(Self::with_defaults((lab, plan, ports), hub, workers))
    }

    /// An installation in a worker cluster, with a manager of its own that knows no other cluster.
    ///
    /// # Errors
    /// If the lab has no such worker.
    pub async fn of_worker(lab: &'a TestLab, name: &str, ports: InstallationPorts) -> Result<Self> {
        let (hub, plan) =
            (lab.cluster(name).await?, InstallationPlan { workers: 0, elects: false });
        Ok(Self::with_defaults((lab, plan, ports), hub, Vec::new()))
    }

    fn with_defaults(
        (lab, plan, ports): (&'a TestLab, InstallationPlan, InstallationPorts),
        hub: Cluster,
        workers: Vec<Cluster>,
    ) -> Self {
        Self {
            lab,
            hub,
            workers,
            plan,
            ports,
            hasty: true,
            build: None,
            head_proxy: None,
            ray_security: None,
            declared: None,
            queues: false,
            flags: Vec::new(),
        }
    }

    /// This installation with the manager in another cluster of the lab, which is none of its workers.
    ///
    /// # Errors
    /// If the lab has no such cluster.
    pub async fn led_from(self, name: &str) -> Result<Self> {
        let hub = self.lab.cluster(name).await?;
        Ok(Self { hub, ..self })
    }

    /// This installation with leases of the shipped length. On a machine that is as busy as a burst makes it, a leader with
    /// short leases may miss its own deadline, and ends.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { hasty: false, ..self }
    }

    /// This installation with programs of another build, and their default log level.
    #[must_use]
    pub fn built_in(self, folder: PathBuf) -> Self {
        Self { build: Some(folder), ..self }
    }

    /// This installation with agents that admit by the queues of their workers.
    #[must_use]
    pub fn with_queues(self) -> Self {
        Self { queues: true, ..self }
    }

    /// This installation with further flags of managers.
    #[must_use]
    pub fn with_flags(self, flags: Vec<String>) -> Self {
        Self { flags, ..self }
    }

    /// This installation with agents that operate Ray and AppWrapper, and reach Ray heads by this proxy.
    #[must_use]
    pub fn with_operators(self, head_proxy: String) -> Self {
        Self { head_proxy: Some(head_proxy), ..self }
    }

    /// This installation with RayClusters that manager and agents secure as this text says.
    ///
    /// # Errors
    /// If it cannot be written to a file of the lab.
    pub fn with_ray_security(self, text: &str) -> Result<Self> {
        let path = self.file("ray-security.yaml");
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { ray_security: Some(path), ..self })
    }

    /// This installation with kinds of jobs that an administrator declares.
    ///
    /// # Errors
    /// If the text has no definitions, or cannot be written to a file of the lab.
    pub fn with_job_kinds(self, definitions: &str) -> Result<Self> {
        let path = self.file("job-kinds.yaml");
        std::fs::write(&path, definitions)
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { declared: Some((Kinds::declared(definitions)?, path)), ..self })
    }

    fn worker_folder(&self) -> &'static str {
        if self.queues {
            return "config/worker/quota";
        }
        match (&self.head_proxy, &self.ray_security) {
            (Some(_), Some(_)) => "config/worker/ray-security",
            (Some(_), None) => "config/worker/operators",
            (None, _) => "config/worker",
        }
    }

    fn declared_kinds(&self) -> Kinds {
        self.declared.as_ref().map(|(kinds, _)| kinds.clone()).unwrap_or_default()
    }

    /// Applies the manifests to the manager cluster and all workers, and registers the workers.
    ///
    /// # Errors
    /// If an API server refuses something.
    pub async fn install(&self) -> Result<()> {
        let declared = self.declared_kinds();
        let folder = match &self.ray_security {
            Some(_) => "config/ray-security/manager",
            None => "config/default",
        };
        install::hub(&self.hub, (folder, self.ports.webhooks), &declared)
            .await
            .context("installing on the hub")?;
        for worker in &self.workers {
            install::worker(worker, self.worker_folder(), &declared)
                .await
                .with_context(|| format!("installing on {}", worker.name()))?;
        }
        Ok(())
    }

    /// Applies the APIServices of the visibility API, served by the first manager, and waits until they are available.
    ///
    /// # Errors
    /// If the API server refuses something, or does not reach the manager.
    pub async fn aggregate_visibility(&self) -> Result<()> {
        let objects = visibility::manifests(&self.hub).await?;
        visibility::aggregate(&self.hub, objects, self.ports.visibility).await
    }

    /// Applies the APIServices of the visibility API and their Service, which are among these objects, and waits until they are
    /// available.
    ///
    /// # Errors
    /// As [`Self::aggregate_visibility`].
    pub async fn aggregate_visibility_of(&self, objects: Vec<Value>) -> Result<()> {
        let objects = objects.into_iter().filter(visibility::is_of_the_api).collect();
        visibility::aggregate(&self.hub, objects, self.ports.visibility).await
    }

    /// Registers every worker under its name.
    ///
    /// # Errors
    /// If an API server refuses something.
    pub async fn register(&self) -> Result<()> {
        for worker in &self.workers {
            register::worker(&self.hub, worker, None).await?;
        }
        Ok(())
    }

    /// Registers a worker at the address of a proxy in front of it, so that managers can be cut off and its agent is not.
    ///
    /// # Errors
    /// If an API server refuses something.
    pub async fn register_behind(&self, proxy: &FaultProxy, worker: &Cluster) -> Result<()> {
        register::worker(&self.hub, worker, Some(proxy)).await
    }

    /// Starts the first manager, which answers the webhooks and the aggregated visibility API.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn first_manager(&self) -> Result<Program> {
        self.first_manager_with(&Value::Null).await
    }

    /// Starts the first manager with additional blocks in its configuration.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn first_manager_with(&self, blocks: &Value) -> Result<Program> {
        self.manager_on(self.ports, blocks, &[]).await
    }

    /// Starts one more manager, on ports of its own.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn further_manager(&self) -> Result<Program> {
        self.further_manager_with(&Value::Null).await
    }

    /// Starts one more manager, on ports of its own, with additional blocks in its configuration.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn further_manager_with(&self, blocks: &Value) -> Result<Program> {
        self.manager_on(InstallationPorts::choose()?, blocks, &[]).await
    }

    /// Starts a manager that answers on these ports.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn manager_on(
        &self,
        ports: InstallationPorts,
        blocks: &Value,
        environment: &[(&str, &str)],
    ) -> Result<Program> {
        programs::manager(self, (ports, None), blocks, environment).await
    }

    /// Starts a manager that runs only these components, as `--components` names them.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn manager_of(
        &self,
        ports: InstallationPorts,
        components: &str,
        blocks: &Value,
    ) -> Result<Program> {
        programs::manager(self, (ports, Some(components)), blocks, &[]).await
    }

    /// Applies the roles of the API of Ray clusters to the hub and all workers, and starts the program that serves it on this port.
    ///
    /// # Errors
    /// If an API server refuses something, or the program does not become ready.
    pub async fn ray_api(&self, port: u16) -> Result<Program> {
        install::ray_api(&self.hub, &self.workers).await?;
        programs::ray_api(self, port).await
    }

    /// A client of the server of a manager on this port, with its certificate in this Secret.
    ///
    /// # Errors
    /// If there is no such Secret.
    pub async fn client_of(&self, secret: &str, port: u16, user: AuthInfo) -> Result<Client> {
        servers::client(self, secret, port, user).await
    }

    /// The ports that the manifests name.
    #[must_use]
    pub fn ports(&self) -> InstallationPorts {
        self.ports
    }

    /// Starts an agent on a worker.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn agent(&self, worker: &Cluster, environment: &[(&str, &str)]) -> Result<Program> {
        self.agent_with(worker, &Value::Null, environment).await
    }

    /// Starts an agent with additional blocks in its configuration.
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

    /// Starts a manager that answers the webhooks and lives as long as the lab.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn lasting_manager(&self) -> Result<()> {
        programs::lasting_manager(self, self.ports).await
    }

    /// Starts an agent on a worker that lives as long as the lab.
    ///
    /// # Errors
    /// If it does not become ready.
    pub async fn lasting_agent(&self, worker: &Cluster) -> Result<()> {
        programs::lasting_agent(self, worker).await
    }

    /// Where the manager reads kubeconfigs from files. A test that has some makes it.
    #[must_use]
    pub fn kubeconfig_directory(&self) -> PathBuf {
        self.file("kubeconfigs")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.lab.state().directory.join(name)
    }
}

/// A process, ended when it is dropped.
pub type RunningProcess = Process;
