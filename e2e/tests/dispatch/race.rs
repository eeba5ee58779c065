//! Workers with queues of their own: under Kueue's default dispatcher (docs/reference/multikueue.md §2.4), and beside an agent.

use anyhow::{Context, Result, ensure};
use crds::{
    meta::is_true,
    names::annotations::ELASTIC_JOB,
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT},
    objects, waits,
};
use futures::future::LocalBoxFuture;
use harness::{Cluster, LabPlan, RunVerdict, Space, TestLab};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{
    cluster_profiles, external_dispatcher, external_frameworks, manager_quota, mixed_workers,
    preemption_gates,
    queued_workers::{no_clone_is_left, queues},
};

/// Two of its workers have queues, so the other tests have labs of their own.
static LAB: OnceCell<TestLab> = OnceCell::const_new();

/// Something that is looked at in the installation.
type RaceTopic = for<'a> fn(&'a QueueRace) -> LocalBoxFuture<'a, Result<()>>;

/// The topics under Kueue's default dispatcher, AllAtOnce.
const ALL_AT_ONCE: [(&str, RaceTopic); 6] = [
    ("the first worker that admits", |race| Box::pin(race.first_worker_that_admits())),
    ("preemption gates", |race| Box::pin(race.one_worker_preempts())),
    ("elastic Jobs", |race| Box::pin(race.elastic_job_resizes())),
    ("quota of workers", |race| Box::pin(race.quota_follows_workers())),
    ("other frameworks", |race| Box::pin(race.framework_is_mirrored())),
    ("frameworks of another controller", |race| Box::pin(race.foreign_framework_is_refused())),
];

/// The topic under a dispatcher that another program is.
const EXTERNAL: [(&str, RaceTopic); 1] =
    [("another dispatcher", |race| Box::pin(race.another_program_nominates()))];

/// The topic under the dispatcher by capacity.
const CAPACITY: [(&str, RaceTopic); 1] =
    [("workers with reports and without", |race| Box::pin(race.known_room_comes_first()))];

/// One installation, with one worker more than has queues, is run under each dispatcher.
#[tokio::test]
async fn workers_with_queues_race_under_every_dispatcher() -> Result<()> {
    let mut race = QueueRace::start().await?;
    let mut topics = Topics::default();
    topics.see_all(&race, &ALL_AT_ONCE).await;
    // The gate of ClusterProfiles is off from now on.
    race.stop_manager().await?;
    cluster_profiles::unregister(&race.installation, race.with()?.name()).await?;
    race.start_manager(&external_dispatcher::configuration()).await?;
    topics.see_all(&race, &EXTERNAL).await;
    race.stop_manager().await?;
    race.start_manager(&Value::Null).await?;
    topics.see_all(&race, &CAPACITY).await;
    topics.verdict()
}

/// An installation with three workers: two have queues and managers of their own, one of these without quota.
struct QueueRace {
    lab: &'static TestLab,
    installation: Installation<'static>,
    manager: Option<Program>,
    _queues: Vec<Program>,
    space: Space,
}

impl QueueRace {
    async fn start() -> Result<Self> {
        let start = || TestLab::start(LabPlan { workers: 3, audit: true });
        let lab = LAB.get_or_try_init(start).await?;
        let plan = InstallationPlan { workers: 3, elects: false };
        let installation = Installation::of(lab, plan, InstallationPorts::choose()?).await?;
        installation.install().await?;
        external_frameworks::serve(&installation.hub, &installation.workers).await?;
        cluster_profiles::serve(&installation.hub).await?;
        let blocks = all_at_once(&installation);
        let manager = Some(installation.first_manager_with(&blocks).await?);
        let _queues = managers_of_workers(lab, &installation).await?;
        installation.register().await?;
        let space = lab.space("race").await?;
        let race = Self { lab, installation, manager, _queues, space };
        let [without, with] = race.workers()?;
        cluster_profiles::register(&race.installation, with.name()).await?;
        queues(race.hub(), (without, with), race.namespace()).await?;
        Ok(race)
    }

    async fn stop_manager(&mut self) -> Result<()> {
        if let Some(manager) = self.manager.take() {
            manager.process.terminate(TIMEOUT).await?;
        }
        Ok(())
    }

    async fn start_manager(&mut self, blocks: &Value) -> Result<()> {
        self.manager = Some(self.installation.first_manager_with(blocks).await?);
        Ok(())
    }

    fn hub(&self) -> &Cluster {
        &self.installation.hub
    }

    fn namespace(&self) -> &str {
        self.space.namespace()
    }

    /// The workers with queues: without quota, and with some.
    fn workers(&self) -> Result<[&Cluster; 2]> {
        let [without, with, _] = self.installation.workers.as_slice() else {
            anyhow::bail!("three workers")
        };
        Ok([without, with])
    }

    fn with(&self) -> Result<&Cluster> {
        Ok(self.workers()?[1])
    }

    /// Both workers with queues get a clone. The one without quota never admits it, and the other one runs the Job.
    async fn first_worker_that_admits(&self) -> Result<()> {
        let (hub, namespace) = (self.hub(), self.namespace());
        let jobs: Api<Job> = hub.api(namespace);
        let job = serde_json::from_value(objects::job("train", 2, "1", 4))?;
        jobs.create(&PostParams::default(), &job).await?;
        let workloads: Api<Workload> = hub.api(namespace);
        let finished =
            |all: &[Workload]| all.iter().any(|one| is_true(&one.status.conditions, "Finished"));
        let all = hub.until_all(&workloads, "", "the Job is over", 2 * TIMEOUT, finished).await?;
        let status = &all.first().context("a Workload")?.status;
        ensure!(status.cluster_name.as_deref() == Some("worker-2"), "{status:?}");
        no_clone_is_left(self.workers()?, namespace).await?;
        let observer = self.space.observer();
        waits::ensure_verdict(observer, ("train", 2), &[RunVerdict::Once]).await?;
        Ok(())
    }

    async fn one_worker_preempts(&self) -> Result<()> {
        let workers = self.workers()?;
        preemption_gates::one_of_two_workers_preempts(self.lab, &self.installation, workers).await
    }

    async fn elastic_job_resizes(&self) -> Result<()> {
        resize(self.hub(), self.with()?, self.namespace()).await
    }

    async fn quota_follows_workers(&self) -> Result<()> {
        manager_quota::follows_workers(self.hub(), self.with()?, self.namespace()).await
    }

    async fn framework_is_mirrored(&self) -> Result<()> {
        external_frameworks::is_mirrored(self.hub(), self.with()?, self.namespace()).await
    }

    async fn foreign_framework_is_refused(&self) -> Result<()> {
        let (hub, namespace) = (self.hub(), self.namespace());
        external_frameworks::of_another_controller_is_refused(hub, namespace).await
    }

    async fn another_program_nominates(&self) -> Result<()> {
        external_dispatcher::another_program_nominates(self.lab, &self.installation).await
    }

    async fn known_room_comes_first(&self) -> Result<()> {
        let (lab, installation) = (self.lab, &self.installation);
        mixed_workers::known_room_comes_first_and_then_the_queues(lab, installation).await
    }
}

/// The configuration without a name of a dispatcher: it is the default one.
fn all_at_once(installation: &Installation<'_>) -> Value {
    let dispatch = json!({
        "externalFrameworks": [{"name": external_frameworks::NAME}],
        "clusterProfile": cluster_profiles::configuration(installation),
    });
    let gates = json!({
        "MultiKueueClusterProfile": true, "MultiKueueManagerQuotaAutomation": true,
        "MultiKueueOrchestratedPreemption": true,
    });
    json!({"multiKueue": dispatch, "featureGates": gates})
}

/// Managers on the workers with queues.
async fn managers_of_workers(
    lab: &'static TestLab,
    installation: &Installation<'_>,
) -> Result<Vec<Program>> {
    let mut managers = Vec::new();
    for worker in installation.workers.iter().take(2) {
        let ports = InstallationPorts::choose()?;
        let own = Installation::of_worker(lab, worker.name(), ports).await?;
        own.install().await?;
        let gates = json!({"featureGates": {"MultiKueueOrchestratedPreemption": true}});
        managers.push(own.first_manager_with(&gates).await?);
    }
    Ok(managers)
}

/// What is looked at in one installation, one after the other. A failure does not hide the others.
#[derive(Default)]
struct Topics(Vec<String>);

impl Topics {
    fn see(&mut self, topic: &str, result: Result<()>) {
        match result {
            Ok(()) => eprintln!("{topic}: passed"),
            Err(error) => {
                eprintln!("{topic}: {error:#}");
                self.0.push(format!("{topic}: {error:#}"));
            }
        }
    }

    async fn see_all(&mut self, race: &QueueRace, topics: &[(&str, RaceTopic)]) {
        for (name, topic) in topics {
            self.see(name, topic(race).await);
        }
    }

    fn verdict(self) -> Result<()> {
        ensure!(self.0.is_empty(), "{}", self.0.join("\n"));
        Ok(())
    }
}

/// The queue of the worker, and its webhooks, take a smaller clone, and then a larger one in its place. The Job goes on.
async fn resize(hub: &Cluster, worker: &Cluster, namespace: &str) -> Result<()> {
    let jobs: Api<Job> = hub.api(namespace);
    let mut job = objects::job("elastic", 2, "1", 3600);
    job["metadata"]["annotations"] = json!({ELASTIC_JOB: "true"});
    job["spec"]["completions"] = json!(100);
    job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
    jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let labels = "batch.kubernetes.io/job-name=elastic";
    let pods: Api<Pod> = worker.api(namespace);
    let running = |n: usize| {
        move |all: &[Pod]| {
            all.len() == n && all.iter().filter(|pod| objects::phase(pod) == "Running").count() == n
        }
    };
    let all = worker.until_all(&pods, labels, "two run", 2 * TIMEOUT, running(2)).await?;
    let before: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    let smaller = Patch::Merge(json!({"spec": {"parallelism": 1}}));
    jobs.patch("elastic", &PatchParams::default(), &smaller).await?;
    let left = worker.until_all(&pods, labels, "one is left", 2 * TIMEOUT, running(1)).await?;
    ensure!(before.contains(&left[0].name_any()), "it goes on");
    for cluster in [hub, worker] {
        let queues = cluster.cluster_api::<ClusterQueue>();
        let uses_one = |queue: &ClusterQueue| {
            let usage = queue.status.flavors_usage.iter().flat_map(|one| &one.resources);
            let mut totals = usage.flat_map(|one| &one.total);
            totals.any(|total| total.to_string() == "1")
        };
        cluster.until(&queues, namespace, "uses one cpu", TIMEOUT, uses_one).await?;
    }
    let larger = Patch::Merge(json!({"spec": {"parallelism": 2}}));
    jobs.patch("elastic", &PatchParams::default(), &larger).await?;
    let all = worker.until_all(&pods, labels, "two run again", 2 * TIMEOUT, running(2)).await?;
    ensure!(all.iter().any(|one| one.uid() == left[0].uid()), "it goes on beside another one");
    let one = |all: &[Workload]| all.len() == 1;
    worker.until_all(&worker.api(namespace), "", "it has one clone", 2 * TIMEOUT, one).await?;
    let one = |all: &[Workload]| {
        let open = all.iter().filter(|one| !is_true(&one.status.conditions, "Finished"));
        open.count() == 1
    };
    hub.until_all(&hub.api(namespace), "", "one slice is left", 2 * TIMEOUT, one).await?;
    jobs.delete("elastic", &DeleteParams::background()).await?;
    let none = |all: &[Workload]| all.is_empty();
    worker.until_all(&worker.api(namespace), "", "no clone is left", TIMEOUT, none).await?;
    Ok(())
}
