//! The fixture of a test: a namespace with a queue of both workers, jobs with containers that write a diary, and waits.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::{meta, v1beta2::Workload};
use e2e::diary::{self, Diary};
use e2e::{installation::TIMEOUT, objects, waits};
use harness::{Cluster, Judgement, RunVerdict, Space, program};
use k8s_openapi::api::batch::v1::JobCondition;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use lab::real_nodes::running_node::RunningNode;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::shared_installation::SharedInstallation;

/// Pause between two looks at a diary.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A namespace with a queue of both workers.
pub(crate) struct RealFixture {
    shared: &'static SharedInstallation,
    pub(crate) hub: Cluster,
    pub(crate) workers: Vec<Cluster>,
    space: Space,
    own_node: Option<usize>,
}

const WORKERS: [&str; 2] = ["worker-1", "worker-2"];

impl RealFixture {
    /// Beside other tests, on the first node of each worker.
    pub(crate) async fn open(test: &str) -> Result<Self> {
        Self::open_on(test, &WORKERS).await
    }

    /// Beside other tests, with a queue of these workers.
    pub(crate) async fn open_on(test: &str, workers: &[&str]) -> Result<Self> {
        let shared = SharedInstallation::get().await?;
        let fixture = Self::of(shared, shared.lab.space(test).await?).await?;
        objects::queue(&fixture.hub, fixture.namespace(), "2", workers).await?;
        Ok(fixture)
    }

    /// For a test that ends programs: no other runs beside it.
    pub(crate) async fn open_alone(test: &str) -> Result<Self> {
        let shared = SharedInstallation::get().await?;
        let fixture = Self::of(shared, shared.lab.space_alone(test).await?).await?;
        objects::queue(&fixture.hub, fixture.namespace(), "2", &WORKERS).await?;
        Ok(fixture)
    }

    /// For a test that breaks nodes: node `number` of each worker, counted from 0, takes no pods of other tests.
    pub(crate) async fn open_with_own_nodes(test: &str, number: usize) -> Result<Self> {
        let shared = SharedInstallation::get().await?;
        let fixture = Self::of(shared, shared.lab.space(test).await?).await?;
        let own = format!("{}={}", objects::OWN, fixture.namespace());
        for worker in &fixture.workers {
            let node = worker.state().real_nodes.get(number).context("a node of this number")?;
            worker.kubectl(&["taint", "node", &node.name, &format!("{own}:NoSchedule")]).await?;
            worker.kubectl(&["label", "node", &node.name, &own]).await?;
        }
        objects::own_queue(&fixture.hub, fixture.namespace(), "2", &WORKERS).await?;
        Ok(Self { own_node: Some(number), ..fixture })
    }

    async fn of(shared: &'static SharedInstallation, space: Space) -> Result<Self> {
        let installation = shared.installation().await?;
        let (hub, workers) = (installation.hub, installation.workers);
        Ok(Self { shared, hub, workers, space, own_node: None })
    }

    /// Gives the queue this quota of cpu.
    pub(crate) async fn set_quota(&self, cpu: &str) -> Result<()> {
        objects::set_quota(&self.hub, self.namespace(), &[("cpu", cpu)]).await
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    /// Submits an object of this shape to the manager.
    pub(crate) async fn submit(&self, object: &Value) -> Result<()> {
        Ok(self.hub.apply(&object.to_string(), self.namespace()).await?)
    }

    /// The Workload of a job, once it has a worker, and that worker.
    pub(crate) async fn until_placed(&self, job: &str) -> Result<(Workload, &Cluster)> {
        let place = (&self.hub, self.namespace());
        let placed = |one: &Workload| one.status.cluster_name.is_some();
        let workload = waits::until_workload(place, (job, "has a worker"), TIMEOUT, placed).await?;
        let name = workload.status.cluster_name.clone().unwrap_or_default();
        let worker = self.workers.iter().find(|worker| worker.name() == name);
        Ok((workload, worker.with_context(|| format!("no worker {name}"))?))
    }

    /// The Workload of a job, once it was evicted for a reason.
    pub(crate) async fn until_evicted(&self, job: &str, reason: &str) -> Result<Workload> {
        let evicted = |one: &Workload| {
            let condition = meta::find(&one.status.conditions, "Evicted");
            condition.is_some_and(|one| one.status == "True" && one.reason == reason)
        };
        let place = (&self.hub, self.namespace());
        waits::until_workload(place, (job, "is evicted"), 2 * TIMEOUT, evicted).await
    }

    /// Reason and message about pods of a job that cannot start, once the manager shows one of these reasons.
    pub(crate) async fn until_failing(&self, job: &str, reasons: &[&str]) -> Result<[String; 2]> {
        let (place, what) = ((&self.hub, self.namespace()), format!("shows one of {reasons:?}"));
        let fails = |one: &Workload| waits::pods_failing(one, reasons).is_some();
        let workload = waits::until_workload(place, (job, &what), 2 * TIMEOUT, fails).await?;
        let shown = waits::pods_failing(&workload, reasons).context("the condition")?;
        Ok([shown.reason.clone(), shown.message.clone()])
    }

    /// What `sluicectl explain` prints about a job, once it names an Event about pods that cannot start.
    pub(crate) async fn explained(&self, job: &str) -> Result<String> {
        let arguments = ["explain", job, "-n", self.namespace()];
        let explained = async {
            loop {
                let mut command = Command::new(program("sluicectl")?);
                command.env("KUBECONFIG", self.hub.state().kubeconfig()).args(arguments);
                let output = command.output().await?;
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                ensure!(output.status.success(), "{text}{output:?}");
                // Events are written after the condition.
                if text.contains("Warning   PodsFailing") {
                    return Ok(text);
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        timeout(TIMEOUT, explained).await.context("no Event about the pods is explained")?
    }

    /// The pods of the test on a worker, once so many run.
    pub(crate) async fn until_running(&self, worker: &Cluster, count: usize) -> Result<Vec<Pod>> {
        let run = |all: &[Pod]| {
            all.iter().filter(|pod| objects::phase(pod) == "Running").count() == count
        };
        let pods: Api<Pod> = worker.api(self.namespace());
        Ok(worker.until_all(&pods, "", &format!("{count} run"), 2 * TIMEOUT, run).await?)
    }

    /// The condition with which a Job ends.
    pub(crate) async fn until_ended(&self, job: &str, end: &str) -> Result<JobCondition> {
        self.until_ended_within(job, end, 2 * TIMEOUT).await
    }

    /// The condition with which a Job ends before this deadline.
    pub(crate) async fn until_ended_within(
        &self,
        job: &str,
        end: &str,
        within: Duration,
    ) -> Result<JobCondition> {
        let place = (&self.hub, self.namespace());
        let (_, condition) = waits::until_job_ended(place, (job, end), within).await?;
        Ok(condition)
    }

    /// Waits until no worker has a pod in the namespace.
    pub(crate) async fn until_no_pod_is_left(&self) -> Result<()> {
        for worker in &self.workers {
            waits::until_no_pod_is_left(worker, self.namespace(), TIMEOUT).await?;
        }
        Ok(())
    }

    /// The observer saw the Job run once.
    pub(crate) async fn ensure_once(&self, job: &str, pods: usize) -> Result<Judgement> {
        self.ensure_verdict(job, pods, RunVerdict::Once).await
    }

    /// The observer saw runs of the Job one after the other, of which the last did all the work.
    pub(crate) async fn ensure_moved(&self, job: &str, pods: usize) -> Result<()> {
        self.ensure_verdict(job, pods, RunVerdict::Moved).await.map(drop)
    }

    /// The observer saw a pod without an owner run once, on one worker; `work` is 0 if it failed.
    pub(crate) async fn ensure_pod_once(&self, pod: &str, work: usize) -> Result<Judgement> {
        waits::ensure_pod_once(self.space.observer(), pod, work).await
    }

    /// Waits until a pod of the manager has this phase.
    pub(crate) async fn until_phase(&self, pod: &str, phase: &str) -> Result<Pod> {
        let has = |pod: &Pod| objects::phase(pod) == phase;
        let pods: Api<Pod> = self.hub.api(self.namespace());
        Ok(self.hub.until(&pods, pod, &format!("is {phase}"), 2 * TIMEOUT, has).await?)
    }

    async fn ensure_verdict(
        &self,
        job: &str,
        pods: usize,
        verdict: RunVerdict,
    ) -> Result<Judgement> {
        waits::ensure_verdict(self.space.observer(), (job, pods), &[verdict]).await
    }

    /// What the containers of the test wrote on all nodes of a worker.
    pub(crate) fn diary(&self, worker: &Cluster) -> Result<Diary> {
        Diary::read(worker.state(), self.namespace())
    }

    /// What the containers of the test wrote on all workers, one worker after the other.
    pub(crate) fn whole_diary(&self) -> Result<Diary> {
        let diaries = self.workers.iter().map(|worker| self.diary(worker));
        Ok(Diary::joined(diaries.collect::<Result<Vec<_>>>()?))
    }

    /// Waits until so many containers noted a word on a worker. A pod runs before its script has written anything.
    pub(crate) async fn until_noted(
        &self,
        worker: &Cluster,
        word: &str,
        count: usize,
    ) -> Result<Diary> {
        let noted = async {
            loop {
                let diary = self.diary(worker)?;
                if diary.entries(word).len() >= count {
                    return anyhow::Ok(diary);
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        let late = || format!("{word} is not {count} times in {:?}", self.diary(worker));
        timeout(2 * TIMEOUT, noted).await.with_context(late)?
    }

    /// Leaves a file for containers on all nodes, as `/diaries/NAME`.
    pub(crate) fn leave_file(&self, name: &str) -> Result<()> {
        let mut workers = self.workers.iter();
        workers.try_for_each(|worker| Diary::leave_file(worker.state(), self.namespace(), name))
    }

    /// This test's own node of a worker.
    pub(crate) fn own_node(&self, worker: &Cluster) -> Result<RunningNode> {
        let nodes = &worker.state().real_nodes;
        let node = self.own_node.and_then(|number| nodes.get(number));
        Ok(worker.running_node(node.context("the test has no own nodes")?)?)
    }

    /// Kills manager and agents, and starts them again.
    pub(crate) async fn crash_programs(&self) -> Result<()> {
        self.shared.crash_programs().await
    }

    /// The containers wrote on no other worker.
    pub(crate) fn ensure_only_on(&self, worker: &Cluster) -> Result<()> {
        for other in self.workers.iter().filter(|other| other.name() != worker.name()) {
            let lines = self.diary(other)?;
            ensure!(lines.is_empty(), "{} ran containers, too: {lines:?}", other.name());
        }
        Ok(())
    }

    /// A pod with a container that runs a script; `note WORD` writes a line to the diary.
    pub(crate) fn pod(&self, name: &str, script: &str) -> Value {
        diary::pod(self.namespace(), name, script)
    }

    /// A Job of such pods, which fails with its first pod.
    pub(crate) fn job(&self, name: &str, pods: usize, script: &str) -> Value {
        diary::job(self.namespace(), name, pods, script)
    }
}
