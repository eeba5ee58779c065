//! An agent alone: clones and Jobs as a manager makes them, admitted by the room on the nodes.

use anyhow::{Context, Result};
use crds::{meta::is_true, v1alpha1::ClusterCapacity, v1beta2::Workload};
use e2e::world::SOON;
use harness::{Cluster, Verdict};
use jobs::{GenericJob, Job};
use kube::api::PostParams;
use serde_json::json;

use crate::{house::House, place};

/// A Job and its clone, as a manager makes them: the clone says what the stored Job says.
async fn make(
    worker: &Cluster,
    namespace: &str,
    (name, pods, cpu): (&str, usize, &str),
) -> Result<()> {
    let mut job = place::job(name, pods, cpu, 1);
    let origin = json!({"kueue.x-k8s.io/multikueue-origin": "elsewhere"});
    job["metadata"]["labels"] = origin.clone();
    job["metadata"]["annotations"] =
        json!({"sluice.dev/epoch": "1", "kueue.x-k8s.io/prebuilt-workload-name": name});
    job["spec"]["suspend"] = json!(true);
    let jobs = worker.api::<Job>(namespace);
    let stored = jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
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
async fn a_clone_with_room_is_admitted_and_its_job_runs_to_its_end() -> Result<()> {
    let world = House::shared().await?.world().await?;
    let space = world.lab.space("thin_worker").await?;
    let worker = world.workers.first().context("a worker")?;
    worker.add_nodes(&place::nodes("thin", 2, "2")).await?;
    let namespace = space.namespace();
    make(worker, namespace, ("fits", 2, "1")).await?;
    let clones = worker.api::<Workload>(namespace);
    let over = |clone: &Workload| is_true(&clone.status.conditions, "Finished");
    let clone = worker.until(&clones, "fits", "is finished", SOON, over).await?;
    let admission = clone.status.admission.context("an admission")?;
    assert_eq!(admission.cluster_queue, "sluice-thin");
    let judgement = space.observer().judge("fits", 2, SOON).await?;
    assert_eq!(judgement.verdict, Verdict::Once, "{judgement}");
    Ok(())
}

#[tokio::test]
async fn a_pod_that_no_single_node_can_hold_waits() -> Result<()> {
    let world = House::alone().await?.world().await?;
    let space = world.lab.space_alone("no_single_node").await?;
    let worker = world.workers.get(1).context("a second worker")?;
    worker.add_nodes(&place::nodes("split", 4, "2")).await?;
    let reports = worker.cluster_api::<ClusterCapacity>();
    let known = |report: &ClusterCapacity| {
        report.status.node_classes.iter().map(|class| class.count).sum::<i32>() >= 4
    };
    worker.until(&reports, "local", "reports its nodes", SOON, known).await?;
    let namespace = space.namespace();
    make(worker, namespace, ("large", 1, "4")).await?;
    make(worker, namespace, ("small", 1, "1")).await?;
    let clones = worker.api::<Workload>(namespace);
    let over = |clone: &Workload| is_true(&clone.status.conditions, "Finished");
    worker.until(&clones, "small", "is finished", SOON, over).await?;
    let large = clones.get("large").await?;
    assert!(
        !is_true(&large.status.conditions, "Admitted"),
        "four nodes of two hold no pod of four"
    );
    Ok(())
}
