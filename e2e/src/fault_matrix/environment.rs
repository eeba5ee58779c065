//! A hub, a worker behind a proxy, and a worker of the bystander.

use anyhow::{Context, Result};
use crds::v1beta2::Workload;
use harness::{Cluster, FaultProxy, LabPlan, NodeSpec, Observer, TestLab, make_namespace};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::{
    installation::{Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT},
    objects::{self, job_is},
};

/// The namespace and the queue of the work that faults act on.
pub(super) const TARGET: &str = "target";

/// The namespace and the queue of the bystander.
pub(super) const BYSTANDER: &str = "bystander";

const PLAN: InstallationPlan = InstallationPlan { workers: 2, elects: false };

/// A hub, a worker behind a proxy, and a worker of the bystander.
pub(super) struct FaultEnvironment<'a> {
    installation: Installation<'a>,
    /// In front of the worker of [`TARGET`].
    pub(super) proxy: FaultProxy,
    pub(super) manager: Option<Program>,
    /// That of the worker of [`TARGET`].
    pub(super) agent: Option<Program>,
    _other_agent: Program,
    /// Pods of [`TARGET`] in every cluster.
    pub(super) target: Observer,
    /// Those on workers. A dispatched pod shows on the hub what its copy does, as if it ran there.
    pub(super) target_on_workers: Observer,
    /// Pods of [`BYSTANDER`].
    pub(super) bystander: Observer,
}

impl<'a> FaultEnvironment<'a> {
    /// Its control planes.
    pub(super) async fn lab() -> Result<TestLab> {
        Ok(TestLab::start(LabPlan { workers: PLAN.workers, audit: false }).await?)
    }

    /// Installs everything.
    pub(super) async fn open(lab: &'a TestLab) -> Result<Self> {
        let installation = Installation::of(lab, PLAN, InstallationPorts::choose()?).await?;
        installation.install().await?;
        let [worker, other] = installation.workers.as_slice() else { anyhow::bail!("two workers") };
        let proxy = FaultProxy::start(worker).await?;
        let manager = start_manager(&installation).await?;
        installation.register().await?;
        installation.register_behind(&proxy, worker).await?;
        let agent = installation.agent(worker, &[]).await?;
        let other_agent = installation.agent(other, &[]).await?;
        let clusters = || std::iter::once(&installation.hub).chain(&installation.workers);
        for namespace in [TARGET, BYSTANDER] {
            for cluster in clusters() {
                make_namespace(cluster, namespace).await?;
            }
        }
        for worker in [worker, other] {
            worker.add_nodes(&NodeSpec { cpu: "8".to_owned(), ..NodeSpec::default() }).await?;
        }
        objects::queue(&installation.hub, TARGET, "8", &[worker.name()]).await?;
        objects::queue(&installation.hub, BYSTANDER, "8", &[other.name()]).await?;
        let all: Vec<Cluster> = clusters().cloned().collect();
        let target = Observer::start(&all, TARGET, TIMEOUT).await?;
        let target_on_workers = Observer::start(&installation.workers, TARGET, TIMEOUT).await?;
        let bystander = Observer::start(&all, BYSTANDER, TIMEOUT).await?;
        Ok(Self {
            installation,
            proxy,
            manager: Some(manager),
            agent: Some(agent),
            _other_agent: other_agent,
            target,
            target_on_workers,
            bystander,
        })
    }

    pub(super) fn hub(&self) -> &Cluster {
        &self.installation.hub
    }

    /// The worker that faults act on.
    pub(super) fn worker(&self) -> Result<&Cluster> {
        self.installation.workers.first().context("a worker")
    }

    pub(super) async fn start_manager(&mut self) -> Result<()> {
        self.manager = Some(start_manager(&self.installation).await?);
        Ok(())
    }

    pub(super) async fn start_agent(&mut self) -> Result<()> {
        self.agent = Some(self.installation.agent(self.worker()?, &[]).await?);
        Ok(())
    }

    /// Submits a Job of one pod, which runs for so many seconds.
    pub(super) async fn submit(&self, namespace: &str, name: &str, seconds: u32) -> Result<()> {
        let mut job = objects::job(name, 1, "1", seconds);
        // The webhook of a manager that has just started may not know the queue yet.
        job["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
        let jobs: Api<Job> = self.hub().api(namespace);
        jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        Ok(())
    }

    /// Waits until a Job is complete on the hub.
    pub(super) async fn until_complete(&self, namespace: &str, name: &str) -> Result<()> {
        let complete = |job: &Job| job_is(job, "Complete");
        let jobs = self.hub().api::<Job>(namespace);
        self.hub().until(&jobs, name, "is complete", 2 * TIMEOUT, complete).await?;
        Ok(())
    }

    /// Waits until no worker has a Job, a managed pod or a clone.
    pub(super) async fn until_nothing_is_left(&self, namespace: &str) -> Result<()> {
        for worker in &self.installation.workers {
            let (jobs, clones) = (worker.api::<Job>(namespace), worker.api::<Workload>(namespace));
            worker.until_all(&jobs, "", "no job is left", TIMEOUT, <[Job]>::is_empty).await?;
            let (pods, managed) = (worker.api::<Pod>(namespace), "kueue.x-k8s.io/managed=true");
            worker.until_all(&pods, managed, "no pod is left", TIMEOUT, <[Pod]>::is_empty).await?;
            let none = <[Workload]>::is_empty;
            worker.until_all(&clones, "", "no clone is left", TIMEOUT, none).await?;
        }
        Ok(())
    }

    /// For the error of a cell: the last lines of the programs.
    pub(super) fn explain(&self, cell: &str) -> String {
        let tail = |program: &Option<Program>| {
            program.as_ref().map_or_else(String::new, |one| one.process.log_tail(30))
        };
        format!("{cell}; the manager:\n{}\nthe agent:\n{}", tail(&self.manager), tail(&self.agent))
    }
}

async fn start_manager(installation: &Installation<'_>) -> Result<Program> {
    let blocks = json!({
        "integrations": {"frameworks": ["batch/job", "pod"]},
        // Longer than any fault, also on a slow machine: nothing is lost here, so nothing moves.
        "multiKueue": {"dispatcherName": "sluice.dev/capacity", "workerLostTimeout": "10m"},
    });
    installation.first_manager_with(&blocks).await
}
