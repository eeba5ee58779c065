//! RayClusters that are dispatched to the worker.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use crds::{meta::is_true, names::labels::PREBUILT_WORKLOAD_NAME, v1beta2::Workload};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use crate::fixture::{OperatorFixture, cluster_spec};

/// The pods run on the worker with the labels of the official operator, and the status of the manager's object says so.
#[tokio::test]
async fn a_ray_cluster_runs_on_a_worker_without_an_operator() -> Result<()> {
    let fixture = OperatorFixture::new("ray_cluster").await?;
    fixture
        .submit(&json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "c", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": cluster_spec(2),
        }))
        .await?;
    fixture.until_running("head", 1).await?;
    let workers = fixture.until_running("worker", 2).await?;
    ensure!(workers.iter().all(|pod| pod.labels()["ray.io/group"] == "workers"));
    fixture.until_status(&fixture.hub, ("RayCluster", "c"), "/status/state", "ready").await?;
    let services: Api<Service> = fixture.worker.api(fixture.space.namespace());
    ensure!(services.get_opt("c-head-svc").await?.is_some(), "the head has a Service");

    fixture.delete("RayCluster", "c").await?;
    fixture.until_nothing_left().await
}

/// An agent that is killed leaves no second head: its successor reads what is there.
#[tokio::test]
async fn a_killed_agent_leaves_no_second_head() -> Result<()> {
    let fixture = OperatorFixture::new("killed_agent").await?;
    fixture
        .submit(&json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "c", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": cluster_spec(1),
        }))
        .await?;
    let before = fixture.until_running("head", 1).await?;
    fixture.restart_agent().await?;
    fixture.until_status(&fixture.hub, ("RayCluster", "c"), "/status/state", "ready").await?;
    let after = fixture.until_running("head", 1).await?;
    let names = |pods: &[Pod]| -> Vec<String> { pods.iter().map(ResourceExt::name_any).collect() };
    ensure!(names(&before) == names(&after), "the same head");
    fixture.delete("RayCluster", "c").await?;
    fixture.until_nothing_left().await
}

impl OperatorFixture {
    /// Asks the manager's RayCluster for so many workers.
    async fn resize(&self, workers: u32) -> Result<()> {
        // The templates have the scheduling gate by now, so they stay as they are.
        let replicas = json!([
            {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": workers},
        ]);
        let patch = Patch::Json::<()>(serde_json::from_value(replicas)?);
        let clusters = self.api(&self.hub, "RayCluster");
        clusters.patch("c", &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Until one slice with so many workers is admitted, which the copy on the worker has the clone and the size of. Returns its name.
    async fn until_one_slice(&self, workers: i32) -> Result<String> {
        let is_open = |one: &&Workload| !is_true(&one.status.conditions, "Finished");
        let is_one = |all: &[Workload]| {
            let open: Vec<&Workload> = all.iter().filter(is_open).collect();
            let sized = |one: &Workload| {
                one.spec.pod_sets.get(1).is_some_and(|set| set.count == Some(workers))
            };
            matches!(open[..], [one] if sized(one) && is_true(&one.status.conditions, "Admitted"))
        };
        let namespace = self.space.namespace();
        let what = format!("one slice of {workers} workers is admitted");
        let all = self
            .hub
            .until_all(&self.hub.api::<Workload>(namespace), "", &what, 2 * TIMEOUT, is_one)
            .await?;
        let name = all.iter().find(is_open).map(ResourceExt::name_any).context("a slice")?;
        let follows = |copy: &DynamicObject| {
            copy.data["spec"]["workerGroupSpecs"][0]["replicas"] == workers
                && copy.annotations().get(PREBUILT_WORKLOAD_NAME) == Some(&name)
        };
        let copies = self.api(&self.worker, "RayCluster");
        self.worker.until(&copies, "c", "has the size", 2 * TIMEOUT, follows).await?;
        let is_only = |all: &[Workload]| matches!(all, [one] if one.name_any() == name);
        let clones = self.worker.api::<Workload>(namespace);
        self.worker.until_all(&clones, "", "it has one clone", TIMEOUT, is_only).await?;
        Ok(name)
    }
}

fn uids(pods: &[Pod]) -> BTreeSet<String> {
    let staying = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    staying.filter_map(|pod| pod.metadata.uid.clone()).collect()
}

/// An elastic RayCluster grows and shrinks on the worker that runs it: pods that it keeps run on.
#[tokio::test]
async fn an_elastic_ray_cluster_is_resized_beside_its_running_pods() -> Result<()> {
    let fixture = OperatorFixture::new("elastic_cluster").await?;
    let metadata = json!({
        "name": "c",
        "labels": {"kueue.x-k8s.io/queue-name": "queue"},
        "annotations": {"kueue.x-k8s.io/elastic-job": "true"},
    });
    fixture
        .submit(&json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": metadata, "spec": cluster_spec(2),
        }))
        .await?;
    let head = uids(&fixture.until_running("head", 1).await?);
    let two = uids(&fixture.until_running("worker", 2).await?);
    let first = fixture.until_one_slice(2).await?;

    fixture.resize(4).await?;
    let second = fixture.until_one_slice(4).await?;
    ensure!(first != second, "a second slice");
    let four = uids(&fixture.until_running("worker", 4).await?);
    ensure!(two.is_subset(&four), "no worker was started again: {two:?} {four:?}");

    fixture.resize(3).await?;
    ensure!(fixture.until_one_slice(3).await? == second, "it shrinks in place");
    let three = uids(&fixture.until_running("worker", 3).await?);
    ensure!(three.is_subset(&four), "no worker was started again: {four:?} {three:?}");
    ensure!(uids(&fixture.until_running("head", 1).await?) == head, "the head runs on");
    fixture.until_status(&fixture.hub, ("RayCluster", "c"), "/status/state", "ready").await?;

    fixture.delete("RayCluster", "c").await?;
    fixture.until_nothing_left().await
}
