//! A worker with an agent that admits by the ClusterQueues of the worker (docs/reference/dispatch.md §4): clones as Kueue's manager makes
//! them, and Jobs of a manager of this project.

use anyhow::{Context, Result, ensure};
use crds::{
    meta::is_true,
    v1alpha1::ClusterCapacity,
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{
    audit_log::forbidden,
    installation::{Installation, InstallationPlan, InstallationPorts, TIMEOUT},
    waits,
};
use harness::{Cluster, LabPlan, RunVerdict, Space, TestLab};
use jobs::{GenericJob, Job};
use k8s_openapi::api::batch::v1::Job as StoredJob;
use kube::api::PostParams;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::objects::{self, LONG};

static LAB: OnceCell<TestLab> = OnceCell::const_new();

const PLAN: InstallationPlan = InstallationPlan { workers: 1, elects: false };

#[tokio::test]
async fn an_agent_admits_by_its_queues_for_managers_of_kueue_and_of_this_project() -> Result<()> {
    let plan = LabPlan { workers: PLAN.workers, audit: true };
    let lab = LAB.get_or_try_init(|| TestLab::start(plan)).await?;
    let installation = Installation::of(lab, PLAN, InstallationPorts::choose()?).await?;
    let installation = installation.with_queues();
    installation.install().await?;
    let worker = installation.workers.first().context("a worker")?;
    let _manager = installation.first_manager().await?;
    installation.register().await?;
    let _agent = installation.agent(worker, &[]).await?;
    worker.add_nodes(&objects::nodes("node", 2, "4")).await?;
    let space = lab.space("agent_queues").await?;
    objects::queue(worker, space.namespace(), "4", &[]).await?;

    for_kueue(worker, &space).await?;
    for_this_project(&installation, (worker, &space)).await?;

    let refused = forbidden(worker, "sluice-agent")?;
    ensure!(refused.is_empty(), "{refused:#?}");
    Ok(())
}

/// A suspended Job and its clone, as Kueue's manager makes them.
async fn make(
    worker: &Cluster,
    namespace: &str,
    (name, cpu, seconds, priority): (&str, &str, u32, i32),
) -> Result<()> {
    let origin = json!({"kueue.x-k8s.io/multikueue-origin": "elsewhere"});
    let mut job = objects::job(name, 1, cpu, seconds);
    job["metadata"]["labels"] = origin.clone();
    job["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = json!(name);
    job["spec"]["suspend"] = json!(true);
    let stored_jobs = worker.api::<StoredJob>(namespace);
    // With the defaults of the API server, which the pod sets of the clone have as well.
    let stored = stored_jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let stored: Job = serde_json::from_value(serde_json::to_value(stored)?)?;
    let clone = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": name, "labels": origin},
        "spec": {
            "queueName": "queue", "priority": priority,
            "podSets": stored.pod_sets(jobs::JobGates::default()),
        },
    });
    worker.apply(&clone.to_string(), namespace).await?;
    Ok(())
}

/// The second clone waits for the quota of the first, and the third preempts the second.
async fn for_kueue(worker: &Cluster, space: &Space) -> Result<()> {
    let namespace = space.namespace();
    let clones = worker.api::<Workload>(namespace);
    let is = |condition: &'static str| {
        move |clone: &Workload| is_true(&clone.status.conditions, condition)
    };
    make(worker, namespace, ("first", "3", 1, 0)).await?;
    let first = worker.until(&clones, "first", "is admitted", TIMEOUT, is("Admitted")).await?;
    let admission = first.status.admission.context("an admission")?;
    ensure!(admission.cluster_queue == namespace, "{admission:?}");
    ensure!(
        admission.pod_set_assignments.iter().all(|one| one.flavors["cpu"] == namespace),
        "{admission:?}"
    );
    make(worker, namespace, ("second", "3", LONG, 0)).await?;
    worker.until(&clones, "first", "is finished", TIMEOUT, is("Finished")).await?;
    worker.until(&clones, "second", "is admitted", TIMEOUT, is("Admitted")).await?;
    make(worker, namespace, ("urgent", "3", 1, 10)).await?;
    worker.until(&clones, "second", "is preempted", TIMEOUT, is("Preempted")).await?;
    for name in ["first", "urgent"] {
        worker.until(&clones, name, "is finished", TIMEOUT, is("Finished")).await?;
        waits::ensure_verdict(space.observer(), (name, 1), &[RunVerdict::Once]).await?;
    }
    // The preempted one gets the quota back.
    worker.until(&clones, "second", "is admitted again", TIMEOUT, is("Admitted")).await?;
    let queues = worker.cluster_api::<ClusterQueue>();
    let counted = |queue: &ClusterQueue| queue.status.admitted_workloads == 1;
    worker.until(&queues, namespace, "counts what is admitted", TIMEOUT, counted).await?;
    worker.kubectl(&["-n", namespace, "delete", "workload", "second"]).await?;
    Ok(())
}

async fn for_this_project(
    installation: &Installation<'_>,
    (worker, space): (&Cluster, &Space),
) -> Result<()> {
    let (hub, namespace) = (&installation.hub, space.namespace());
    objects::queue(hub, namespace, "8", &[worker.name()]).await?;
    let reports = worker.cluster_api::<ClusterCapacity>();
    let shows = |report: &ClusterCapacity| {
        let mut quotas = report.status.flavors.iter();
        report.status.mode == "Quota"
            && quotas.any(|one| one.cluster_queue == namespace && one.nominal.to_string() == "4")
    };
    worker.until(&reports, "local", "shows its quota", TIMEOUT, shows).await?;
    let jobs = hub.api::<StoredJob>(namespace);
    let job = serde_json::from_value(objects::job("dispatched", 2, "1", 1))?;
    jobs.create(&PostParams::default(), &job).await?;
    let is_complete = |job: &StoredJob| objects::job_is(job, "Complete");
    hub.until(&jobs, "dispatched", "is complete", 2 * TIMEOUT, is_complete).await?;
    waits::ensure_verdict(space.observer(), ("dispatched", 2), &[RunVerdict::Once]).await?;
    Ok(())
}
