//! Objects that are wrong cost themselves only: a queue without its flavor, Workloads with a status that contradicts everything else, and a
//! Workload that does not decode.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::{
    meta::find,
    names::conditions::{ACTIVE, QUOTA_RESERVED},
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT},
    objects, waits,
};
use harness::{Cluster, LabPlan, TestLab};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::bad_groups;

const SPACE: &str = "bad-objects";

const API: &str = "kueue.x-k8s.io/v1beta2";

/// The queue without a flavor, its flavor, and the Job that waits for it.
const UNFLAVORED: &str = "unflavored";

/// Between two looks at what cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[tokio::test]
async fn wrong_objects_cost_themselves_only() -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let plan = InstallationPlan { workers: 0, elects: false };
    let installation = Installation::of(&lab, plan, InstallationPorts::choose()?).await?;
    installation.install().await?;
    let frameworks = json!({"integrations": {"frameworks": ["batch/job", "pod"]}});
    let manager = installation.first_manager_with(&frameworks).await?;
    let cluster = &installation.hub;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}).to_string();
    cluster.apply(&namespace, SPACE).await?;
    objects::queue(cluster, SPACE, "4", &[]).await?;
    cluster.add_nodes(&objects::nodes(SPACE, 1, "4")).await?;

    remove_webhooks(cluster).await?;
    create_unflavored(cluster).await?;
    for (name, status) in contradictions() {
        contradictory(cluster, name, &status).await?;
    }
    completes(cluster, "beside-contradictions", "queue").await?;
    mend(cluster).await?;
    bad_groups::are_named_counted_and_mended((cluster, SPACE), &manager).await?;

    undecodable(cluster).await?;
    until_unreadable(&manager, 1).await?;
    completes(cluster, "beside-undecodable", "queue").await?;
    cluster.kubectl(&["-n", SPACE, "delete", "workloads.v1beta2.kueue.x-k8s.io", "text"]).await?;
    until_unreadable(&manager, 0).await
}

/// The API server accepts what webhooks would refuse, as after their configurations were deleted for a while.
async fn remove_webhooks(cluster: &Cluster) -> Result<()> {
    for kind in ["mutating", "validating"] {
        let resource = format!("{kind}webhookconfigurations");
        let name = format!("kueue-{kind}-webhook-configuration");
        cluster.kubectl(&["delete", &resource, &name]).await?;
    }
    Ok(())
}

/// Creates a Job in a queue, suspended, because no webhook does that.
async fn create_job(cluster: &Cluster, name: &str, queue: &str) -> Result<()> {
    let mut job = objects::job(name, 1, "1", 1);
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(queue);
    job["spec"]["suspend"] = json!(true);
    let job: Job = serde_json::from_value(job)?;
    cluster.api::<Job>(SPACE).create(&PostParams::default(), &job).await?;
    Ok(())
}

/// Creates a Job in a queue, and waits until it has run.
async fn completes(cluster: &Cluster, name: &str, queue: &str) -> Result<()> {
    create_job(cluster, name, queue).await?;
    let complete = |job: &Job| objects::job_is(job, "Complete");
    cluster.until(&cluster.api(SPACE), name, "completes", TIMEOUT, complete).await?;
    Ok(())
}

/// A queue with a flavor that does not exist, and a Job that waits for it.
async fn create_unflavored(cluster: &Cluster) -> Result<()> {
    let quota = json!({"name": UNFLAVORED, "resources": [{"name": "cpu", "nominalQuota": "1"}]});
    let queues = [
        json!({"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": UNFLAVORED}, "spec": {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        }}),
        json!({"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": UNFLAVORED},
            "spec": {"clusterQueue": UNFLAVORED}}),
    ];
    cluster.apply(&queues.map(|one| one.to_string()).join("\n---\n"), SPACE).await?;
    create_job(cluster, UNFLAVORED, UNFLAVORED).await
}

/// What no manager writes.
fn contradictions() -> [(&'static str, Value); 3] {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "Odd", "message": "",
            "lastTransitionTime": "2000-01-01T00:00:00Z",
        })
    };
    let admission = |queue: &str, flavor: &str, cpu: &str| {
        json!({"clusterQueue": queue, "podSetAssignments": [{
            "name": "other", "count": 7, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": cpu},
        }]})
    };
    let held = [condition("QuotaReserved"), condition("Admitted")];
    [
        ("of-no-queue", json!({"admission": admission("nowhere", "any", "1"), "conditions": held})),
        (
            "of-no-flavor",
            json!({"admission": admission(UNFLAVORED, "absent", "8E"), "conditions": held}),
        ),
        (
            "of-no-sense",
            json!({
                "admission": admission(UNFLAVORED, UNFLAVORED, "-5"),
                "conditions": [condition("Admitted"), condition("Evicted"), condition("Odd")],
                "requeueState": {"count": 2_000_000_000, "requeueAt": "9999-12-31T23:59:59Z"},
                "reclaimablePods": [{"name": "absent", "count": 2_000_000_000}],
            }),
        ),
    ]
}

async fn contradictory(cluster: &Cluster, name: &str, status: &Value) -> Result<()> {
    let container = json!({
        "name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}},
    });
    let workload = json!({
        "metadata": {"name": name},
        "spec": {"queueName": UNFLAVORED, "podSets": [{"name": "main", "count": 1,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}]},
    });
    let (workloads, params) = (cluster.api::<Workload>(SPACE), PatchParams::default());
    workloads.create(&PostParams::default(), &serde_json::from_value(workload)?).await?;
    let status = Patch::Merge(json!({"status": status}));
    let patched = workloads.patch_status(name, &params, &status).await;
    patched.map(drop).with_context(|| format!("the status of {name}"))
}

/// Waits until the queue without a flavor says so, gives it the flavor, and waits until its Job has run.
async fn mend(cluster: &Cluster) -> Result<()> {
    let queues: Api<ClusterQueue> = cluster.cluster_api();
    let missing = |queue: &ClusterQueue| {
        find(&queue.status.conditions, ACTIVE).is_some_and(|one| one.reason == "FlavorNotFound")
    };
    cluster.until(&queues, UNFLAVORED, "has no flavor", TIMEOUT, missing).await?;
    let waits = |one: &Workload| {
        find(&one.status.conditions, QUOTA_RESERVED).is_some_and(|one| one.status == "False")
    };
    waits::until_workload((cluster, SPACE), (UNFLAVORED, "waits"), TIMEOUT, waits).await?;
    for (name, _) in contradictions() {
        // They would hold the quota of the queue.
        cluster.kubectl(&["-n", SPACE, "delete", "workloads.kueue.x-k8s.io", name]).await?;
    }
    let flavor =
        json!({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": UNFLAVORED}});
    cluster.apply(&flavor.to_string(), SPACE).await?;
    let complete = |job: &Job| objects::job_is(job, "Complete");
    cluster.until(&cluster.api(SPACE), UNFLAVORED, "completes", TIMEOUT, complete).await?;
    Ok(())
}

/// Stores a Workload without pod sets but with a text, which the schema does not allow.
async fn undecodable(cluster: &Cluster) -> Result<()> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = |version| {
        let path = format!("/spec/versions/{version}/schema/openAPIV3Schema");
        json!({"op": "replace", "path": path, "value": anything})
    };
    // Fields that are selectable have to be in the schema.
    let no_fields = json!({"op": "remove", "path": "/spec/versions/1/selectableFields"});
    let patch = json!([schema(0), schema(1), no_fields]);
    let (patch, crd) = (patch.to_string(), "workloads.kueue.x-k8s.io");
    cluster.kubectl(&["patch", "crd", crd, "--type=json", "-p", &patch]).await?;
    let workload = json!({"apiVersion": API, "kind": "Workload", "metadata": {"name": "text"}, "spec": "text"});
    // The API server takes the new schema a moment later.
    let stored = async {
        while cluster.apply(&workload.to_string(), SPACE).await.is_err() {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, stored).await.context("the API server never took the schema")
}

/// Waits until so many Workloads do not decode.
async fn until_unreadable(manager: &Program, count: usize) -> Result<()> {
    let line = format!("sluice_watch_unreadable_objects{{watch=\"workloads\"}} {count}\n");
    let counted = |metrics: &str| metrics.contains(&line);
    let metrics = manager.until_scraped("Workloads do not decode", counted).await?;
    ensure!(metrics.contains("sluice_watch_available{watch=\"workloads\"} 1"), "{metrics}");
    Ok(())
}
