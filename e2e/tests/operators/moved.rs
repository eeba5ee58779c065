//! A RayJob in an AppWrapper that is evicted from one worker and runs again on another one.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::v1beta2::{ClusterQueue, Workload};
use e2e::{
    installation::TIMEOUT,
    objects::{OWN, own_nodes},
};
use harness::Cluster;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use lab::stages::annotation::STOP_SECONDS;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    fixture::OperatorFixture,
    ray_jobs::{ray_job, submitted},
};

/// A component without pods, which a finalizer keeps on the first worker.
const HELD: &str = "held";

/// How often the quota is looked at while that component alone is left.
const LOOKS: usize = 30;

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

fn held_service(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": HELD, "namespace": namespace},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
    })
}

async fn set_finalizers(fixture: &OperatorFixture, finalizers: &[&str]) -> Result<()> {
    let services: Api<Service> = fixture.worker.api(fixture.space.namespace());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    services.patch(HELD, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A RayJob with pods that take some seconds to stop.
fn slow_job(namespace: &str) -> Value {
    let mut job = ray_job("wrapped");
    job["metadata"] = json!({"name": "wrapped", "namespace": namespace});
    let cluster = &mut job["spec"]["rayClusterSpec"];
    let annotations = json!({"annotations": {STOP_SECONDS: "8"}});
    cluster["headGroupSpec"]["template"]["metadata"] = annotations.clone();
    cluster["workerGroupSpecs"][0]["template"]["metadata"] = annotations;
    job
}

/// Lets no further pod start on the nodes of the test in a cluster.
async fn cordon(cluster: &Cluster, namespace: &str) -> Result<()> {
    let nodes: Api<Node> = cluster.cluster_api();
    let own = ListParams::default().labels(&format!("{OWN}={namespace}"));
    for node in nodes.list(&own).await?.items {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": true}}));
        nodes.patch(&node.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

async fn set_active(fixture: &OperatorFixture, active: bool) -> Result<()> {
    let workloads: Api<Workload> = fixture.hub.api(fixture.space.namespace());
    let all = workloads.list(&ListParams::default()).await?.items;
    let workload = all.first().context("a Workload")?.name_any();
    let patch = Patch::Merge(json!({"spec": {"active": active}}));
    workloads.patch(&workload, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The quota that Workloads hold, by the status of their queue. Its usage is that of admitted ones only, and ends with the eviction.
fn used_of(queue: &ClusterQueue) -> String {
    let status = serde_json::to_value(&queue.status).unwrap_or_default();
    let total = status.pointer("/flavorsReservation/0/resources/0/total").and_then(Value::as_str);
    total.unwrap_or("0").to_owned()
}

/// Until the status of the queue, which follows by seconds, says so.
async fn until_used(fixture: &OperatorFixture, wanted: &str) -> Result<()> {
    let queues: Api<ClusterQueue> = fixture.hub.cluster_api();
    let what = format!("uses {wanted}");
    let uses = |queue: &ClusterQueue| used_of(queue) == wanted;
    fixture.hub.until(&queues, fixture.space.namespace(), &what, TIMEOUT, uses).await?;
    Ok(())
}

/// Until the queue has all of its quota, which is not before the last pod is gone, and the last component, which is let go here.
async fn until_quota_returns(fixture: &OperatorFixture) -> Result<()> {
    let queues: Api<ClusterQueue> = fixture.hub.cluster_api();
    let pods: Api<Pod> = fixture.worker.api(fixture.space.namespace());
    let end = Instant::now() + 2 * TIMEOUT;
    let mut held_while_stopping = false;
    let mut looks = 0;
    loop {
        // The quota first: pods that are gone do not come back.
        let used = used_of(&queues.get(fixture.space.namespace()).await?);
        let all = pods.list(&ListParams::default()).await?.items;
        let is_stopping = all.iter().any(|pod| pod.metadata.deletion_timestamp.is_some());
        held_while_stopping |= used != "0" && is_stopping;
        looks += usize::from(used != "0" && all.is_empty());
        if looks == LOOKS {
            set_finalizers(fixture, &[]).await?;
        }
        if used == "0" {
            ensure!(all.is_empty(), "{} pods are left without quota", all.len());
            ensure!(held_while_stopping, "no pod was seen while it stopped");
            ensure!(looks >= LOOKS, "a component is left without quota");
            return Ok(());
        }
        ensure!(Instant::now() < end, "the queue still uses {used}, {} pods are left", all.len());
        sleep(PAUSE).await;
    }
}

/// Until the status on the manager cluster is that on the worker.
async fn until_alike(fixture: &OperatorFixture, worker: &Cluster) -> Result<()> {
    let end = Instant::now() + TIMEOUT;
    loop {
        let [there, here] =
            [worker, &fixture.hub].map(|cluster| fixture.api(cluster, "AppWrapper"));
        let (there, here) = (there.get("w").await?, here.get("w").await?);
        if there.data["status"] == here.data["status"] {
            return Ok(());
        }
        let (there, here) = (&there.data["status"], &here.data["status"]);
        ensure!(Instant::now() < end, "there {there}, on the manager cluster {here}");
        sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn a_wrapped_ray_job_moves_to_another_worker_and_ends_there() -> Result<()> {
    let fixture = OperatorFixture::over("moved", &["worker-1", "worker-2"]).await?;
    let namespace = fixture.space.namespace();
    let wrapper = json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "w", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {"components": [
            {"template": held_service(namespace)}, {"template": slow_job(namespace)},
        ]},
    });
    fixture.submit(&wrapper).await?;
    fixture.until_running("worker", 1).await?;
    fixture
        .until_status(&fixture.worker, ("RayJob", "wrapped"), "/status/jobStatus", "PENDING")
        .await?;
    until_alike(&fixture, &fixture.worker).await?;
    set_finalizers(&fixture, &["lab.sluice.dev/held"]).await?;

    until_used(&fixture, "2").await?;
    cordon(&fixture.worker, namespace).await?;
    fixture.second.add_nodes(&own_nodes(namespace, 1, "8")).await?;
    set_active(&fixture, false).await?;
    until_quota_returns(&fixture).await?;

    set_active(&fixture, true).await?;
    fixture.until_running_on(&fixture.second, "worker", 1).await?;
    fixture.until_status(&fixture.second, ("AppWrapper", "w"), "/status/phase", "Running").await?;
    until_alike(&fixture, &fixture.second).await?;
    fixture
        .until_status(&fixture.second, ("RayJob", "wrapped"), "/status/jobStatus", "PENDING")
        .await?;
    fixture.heads().set_status_of(namespace, "SUCCEEDED");
    fixture.until_status(&fixture.hub, ("AppWrapper", "w"), "/status/phase", "Succeeded").await?;
    until_alike(&fixture, &fixture.second).await?;
    let ids = submitted(&fixture, "wrapped");
    let different: BTreeSet<&String> = ids.iter().collect();
    ensure!((ids.len(), different.len()) == (2, 2), "once per place: {ids:?}");
    fixture.until_nothing_left().await
}
