//! An agent without manager: remote copies and Jobs as a manager creates them, admitted by the free capacity of nodes.

use anyhow::{Context, Result};
use crds::{meta::is_true, v1alpha1::ClusterCapacity, v1beta2::Workload};
use e2e::{installation::TIMEOUT, waits};
use harness::{Cluster, RunVerdict};
use jobs::{GenericJob, Job};
use k8s_openapi::api::batch::v1::Job as StoredJob;
use kube::api::PostParams;
use serde_json::json;

use crate::{objects, shared_installation::SharedInstallation};

/// A Job and its remote copy, as a manager creates them.
async fn make(
    worker: &Cluster,
    namespace: &str,
    (name, pods, cpu): (&str, usize, &str),
) -> Result<()> {
    let mut job = objects::job(name, pods, cpu, 1);
    let origin = json!({"kueue.x-k8s.io/multikueue-origin": "elsewhere"});
    job["metadata"]["labels"] = origin.clone();
    job["metadata"]["annotations"] =
        json!({"sluice.dev/epoch": "1", "kueue.x-k8s.io/prebuilt-workload-name": name});
    job["spec"]["suspend"] = json!(true);
    let jobs = worker.api::<StoredJob>(namespace);
    let stored = jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let stored: Job = serde_json::from_value(serde_json::to_value(stored)?)?;
    let sets = stored.pod_sets(jobs::JobGates::default());
    let clone = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {
            "name": name, "labels": origin,
            "annotations": {"sluice.dev/epoch": "1", "sluice.dev/assignment": "{\"main\":{}}"},
        },
        "spec": {"queueName": "queue", "priority": 0, "podSets": sets},
    });
    worker.apply(&clone.to_string(), namespace).await?;
    Ok(())
}

#[tokio::test]
async fn a_remote_workload_that_fits_is_admitted_and_its_job_finishes() -> Result<()> {
    let installation = SharedInstallation::shared().await?.installation().await?;
    let space = installation.lab.space("thin_worker").await?;
    let worker = installation.workers.first().context("a worker")?;
    worker.add_nodes(&objects::nodes("thin", 2, "2")).await?;
    let namespace = space.namespace();
    make(worker, namespace, ("fits", 2, "1")).await?;
    let clones = worker.api::<Workload>(namespace);
    let over = |clone: &Workload| is_true(&clone.status.conditions, "Finished");
    let clone = worker.until(&clones, "fits", "is finished", TIMEOUT, over).await?;
    let admission = clone.status.admission.context("an admission")?;
    assert_eq!(admission.cluster_queue, "sluice-thin");
    waits::ensure_verdict(space.observer(), ("fits", 2), &[RunVerdict::Once]).await.map(drop)
}

#[tokio::test]
async fn a_workload_with_a_pod_that_fits_no_node_stays_pending() -> Result<()> {
    let installation = SharedInstallation::alone().await?.installation().await?;
    let space = installation.lab.space_alone("no_single_node").await?;
    let worker = installation.workers.get(1).context("a second worker")?;
    worker.add_nodes(&objects::nodes("split", 4, "2")).await?;
    let reports = worker.cluster_api::<ClusterCapacity>();
    let known = |report: &ClusterCapacity| {
        report.status.node_classes.iter().map(|class| class.count).sum::<i32>() >= 4
    };
    worker.until(&reports, "local", "reports its nodes", TIMEOUT, known).await?;
    let namespace = space.namespace();
    make(worker, namespace, ("large", 1, "4")).await?;
    make(worker, namespace, ("small", 1, "1")).await?;
    let clones = worker.api::<Workload>(namespace);
    let over = |clone: &Workload| is_true(&clone.status.conditions, "Finished");
    worker.until(&clones, "small", "is finished", TIMEOUT, over).await?;
    let large = clones.get("large").await?;
    assert!(
        !is_true(&large.status.conditions, "Admitted"),
        "four nodes of two hold no pod of four"
    );
    Ok(())
}
