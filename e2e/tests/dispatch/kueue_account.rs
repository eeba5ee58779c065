//! A worker that is registered with the account which Kueue's script makes for MultiKueue: it may create, read and delete copies, and
//! patches nothing but the status of Workloads (docs/reference/multikueue.md §2.9).

use anyhow::{Context, Result};
use crds::{meta::is_true, v1beta2::Workload};
use e2e::installation::{
    Installation, InstallationPlan, InstallationPorts, NAMESPACE, TIMEOUT, registration,
};
use e2e::waits;
use harness::{Cluster, LabPlan, RunVerdict, Space, TestLab};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::{
    fixture::{delete, with_label},
    objects::{self, LONG},
};

static LAB: OnceCell<TestLab> = OnceCell::const_new();

const PLAN: InstallationPlan = InstallationPlan { workers: 1, elects: false };

/// The name of the account and its role.
const ACCOUNT: &str = "multikueue-sa";

#[tokio::test]
async fn an_account_that_was_made_for_kueue_suffices_for_the_life_of_a_job() -> Result<()> {
    let plan = LabPlan { workers: PLAN.workers, audit: true };
    let lab = LAB.get_or_try_init(|| TestLab::start(plan)).await?;
    let installation = Installation::of(lab, PLAN, InstallationPorts::choose()?).await?;
    let installation = installation.with_queues();
    installation.install().await?;
    let worker = installation.workers.first().context("a worker")?;
    // The default dispatcher: the account cannot read reports.
    let _manager = installation.first_manager_with(&json!({"multiKueue": {}})).await?;
    register(&installation.hub, worker).await?;
    let _agent = installation.agent(worker, &[]).await?;
    worker.add_nodes(&objects::nodes("node", 2, "4")).await?;
    let space = lab.space("kueue_account").await?;
    objects::queue(worker, space.namespace(), "4", &[]).await?;
    objects::queue(&installation.hub, space.namespace(), "8", &[worker.name()]).await?;
    let classes = [("low", 1), ("high", 100)].map(|(name, value)| {
        let class = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
            "metadata": {"name": name}, "value": value,
        });
        class.to_string()
    });
    installation.hub.apply(&classes.join("\n---\n"), space.namespace()).await?;

    runs_to_its_end(&installation.hub, &space).await?;
    is_raised_and_deleted(&installation.hub, worker, space.namespace()).await
}

/// Registers the worker with the account of Kueue's script.
async fn register(hub: &Cluster, worker: &Cluster) -> Result<()> {
    let copies = ["create", "delete", "get", "list", "watch"];
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let rules = [
        rule("batch", "jobs", &copies),
        rule("batch", "jobs/status", &["get"]),
        rule("jobset.x-k8s.io", "jobsets", &copies),
        rule("jobset.x-k8s.io", "jobsets/status", &["get"]),
        rule("kueue.x-k8s.io", "workloads", &copies),
        rule("kueue.x-k8s.io", "workloads/status", &["get", "patch", "update"]),
    ];
    let api = "rbac.authorization.k8s.io/v1";
    let objects = [
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        }),
        json!({"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": rules}),
        json!({
            "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }),
    ];
    worker.apply(&objects.map(|one| one.to_string()).join("\n---\n"), NAMESPACE).await?;
    let kubeconfig = worker.kubeconfig_for(NAMESPACE, ACCOUNT).await?;
    hub.apply(&registration(worker.name(), &kubeconfig)?, NAMESPACE).await?;
    Ok(())
}

async fn runs_to_its_end(hub: &Cluster, space: &Space) -> Result<()> {
    let jobs = hub.api::<Job>(space.namespace());
    let job = serde_json::from_value(objects::job("short", 2, "1", 1))?;
    jobs.create(&PostParams::default(), &job).await?;
    let is_complete = |job: &Job| objects::job_is(job, "Complete");
    hub.until(&jobs, "short", "is complete", 2 * TIMEOUT, is_complete).await?;
    waits::ensure_verdict(space.observer(), ("short", 2), &[RunVerdict::Once]).await.map(drop)
}

/// The worker refuses the priority, and the Job goes on.
async fn is_raised_and_deleted(hub: &Cluster, worker: &Cluster, namespace: &str) -> Result<()> {
    const CLASS: &str = "kueue.x-k8s.io/priority-class";
    let jobs = hub.api::<Job>(namespace);
    let job = with_label(objects::job("long", 1, "1", LONG), CLASS, "low");
    jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let pods = worker.api::<Pod>(namespace);
    let labels = "batch.kubernetes.io/job-name=long";
    let runs = |all: &[Pod]| all.iter().filter(|pod| objects::phase(pod) == "Running").count() == 1;
    worker.until_all(&pods, labels, "it runs", 2 * TIMEOUT, runs).await?;
    let class = Patch::Merge(json!({"metadata": {"labels": {CLASS: "high"}}}));
    jobs.patch("long", &PatchParams::default(), &class).await?;
    let workloads = hub.api::<Workload>(namespace);
    let is_raised = |all: &[Workload]| {
        let raised = all.iter().filter(|one| one.spec.priority == Some(100));
        raised.filter(|one| is_true(&one.status.conditions, "Admitted")).count() == 1
    };
    hub.until_all(&workloads, "", "is raised and goes on", TIMEOUT, is_raised).await?;
    delete(&jobs, "long").await?;
    worker.until_all(&pods, labels, "no pod is left", 2 * TIMEOUT, <[Pod]>::is_empty).await?;
    let clones = worker.api::<Workload>(namespace);
    worker.until_all(&clones, "", "no clone is left", TIMEOUT, <[Workload]>::is_empty).await?;
    let copies = worker.api::<Job>(namespace);
    worker.until_all(&copies, "", "no copy is left", TIMEOUT, <[Job]>::is_empty).await?;
    Ok(())
}
