//! Workers with queues of their own: under Kueue's default dispatcher (docs/reference/multikueue.md §2.4), and beside an agent.

use anyhow::{Context, Result, ensure};
use crds::{
    meta::is_true,
    names::annotations::ELASTIC_JOB,
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, TIMEOUT},
    objects, waits,
};
use harness::{Cluster, LabPlan, RunVerdict, TestLab};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::{
    cluster_profiles, external_dispatcher, external_frameworks, manager_quota, mixed_workers,
    preemption_gates,
    queued_workers::{no_clone_is_left, queues},
};

/// Two of its workers have queues, so the other tests have labs of their own.
static LAB: OnceCell<TestLab> = OnceCell::const_new();

/// Both workers with queues get a clone. The one without quota never admits it, and the other one runs the Job. An elastic Job
/// shrinks and grows there, and a job of a kind that another program runs is copied there.
#[tokio::test]
async fn a_job_runs_on_the_first_worker_that_admits_it() -> Result<()> {
    let start = || TestLab::start(LabPlan { workers: 3, audit: true });
    let lab = LAB.get_or_try_init(start).await?;
    let plan = InstallationPlan { workers: 3, elects: false };
    let installation = Installation::of(lab, plan, InstallationPorts::choose()?).await?;
    installation.install().await?;
    let [without, with, _] = installation.workers.as_slice() else {
        anyhow::bail!("three workers")
    };
    external_frameworks::serve(&installation.hub, &installation.workers).await?;
    cluster_profiles::serve(&installation.hub).await?;
    // The block names no dispatcher: it is the default one.
    let dispatch = json!({
        "externalFrameworks": [{"name": external_frameworks::NAME}],
        "clusterProfile": cluster_profiles::configuration(&installation),
    });
    let gates = json!({
        "MultiKueueClusterProfile": true, "MultiKueueManagerQuotaAutomation": true,
        "MultiKueueOrchestratedPreemption": true,
    });
    let blocks = json!({"multiKueue": dispatch, "featureGates": gates});
    let manager = installation.manager_with(true, &blocks, &[]).await?;
    let mut managers = Vec::new();
    for worker in [without, with] {
        let ports = InstallationPorts::choose()?;
        let own = Installation::of_worker(lab, worker.name(), ports).await?;
        own.install().await?;
        let gates = json!({"featureGates": {"MultiKueueOrchestratedPreemption": true}});
        managers.push(own.manager_with(true, &gates, &[]).await?);
    }
    installation.register().await?;
    cluster_profiles::register(&installation, with.name()).await?;

    let space = lab.space("race").await?;
    let (namespace, hub) = (space.namespace(), &installation.hub);
    queues(hub, (without, with), namespace).await?;
    let jobs: Api<Job> = hub.api(namespace);
    let job = serde_json::from_value(objects::job("train", 2, "1", 4))?;
    jobs.create(&PostParams::default(), &job).await?;

    let workloads: Api<Workload> = hub.api(namespace);
    let finished =
        |all: &[Workload]| all.iter().any(|one| is_true(&one.status.conditions, "Finished"));
    let all = hub.until_all(&workloads, "", "the Job is over", 2 * TIMEOUT, finished).await?;
    let status = &all.first().context("a Workload")?.status;
    ensure!(status.cluster_name.as_deref() == Some("worker-2"), "{status:?}");
    no_clone_is_left([without, with], namespace).await?;
    waits::ensure_verdict(space.observer(), ("train", 2), &[RunVerdict::Once]).await?;
    let mut topics = Topics::default();
    let workers = [without, with];
    let preempts = preemption_gates::one_of_two_workers_preempts(lab, &installation, workers);
    topics.see("preemption gates", preempts.await);
    topics.see("elastic Jobs", resize(hub, with, namespace).await);
    topics.see("quota of workers", manager_quota::follows_workers(hub, with, namespace).await);
    let mirrored = external_frameworks::is_mirrored(hub, with, namespace);
    topics.see("other frameworks", mirrored.await);
    let refused = external_frameworks::of_another_controller_is_refused(hub, namespace);
    topics.see("frameworks of another controller", refused.await);

    manager.process.terminate(TIMEOUT).await?;
    // The gate is off from now on.
    cluster_profiles::unregister(&installation, with.name()).await?;
    let external = external_dispatcher::configuration();
    let manager = installation.manager_with(true, &external, &[]).await?;
    let nominates = external_dispatcher::another_program_nominates(lab, &installation);
    topics.see("another dispatcher", nominates.await);
    manager.process.terminate(TIMEOUT).await?;
    let _manager = installation.manager(true, &[]).await?;
    let mixed = mixed_workers::known_room_comes_first_and_then_the_queues(lab, &installation);
    topics.see("workers with reports and without", mixed.await);
    topics.verdict()
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
