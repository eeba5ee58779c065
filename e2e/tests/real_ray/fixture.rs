//! The fixture of a test: a namespace with a queue of both workers, pods with Ray, and waits.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use e2e::{installation::TIMEOUT, objects, waits};
use harness::{Cluster, Space, secs};
use images::ray::RAY_IMAGE;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::shared_installation::SharedInstallation;

/// From a pod with Ray until it is ready, and from a Ray job until its end, on two busy cores.
pub(crate) const RAY_TIMEOUT: Duration = secs(240);

const WORKERS: [&str; 2] = ["worker-1", "worker-2"];

/// A namespace with a queue of both workers.
pub(crate) struct RayFixture {
    pub(crate) hub: Cluster,
    pub(crate) workers: Vec<Cluster>,
    space: Space,
}

impl RayFixture {
    pub(crate) async fn open(test: &str) -> Result<Self> {
        let shared = SharedInstallation::get().await?;
        let space = shared.lab.space(test).await?;
        let installation = shared.installation().await?;
        let (hub, workers) = (installation.hub, installation.workers);
        let fixture = Self { hub, workers, space };
        objects::queue(&fixture.hub, fixture.namespace(), "2", &WORKERS).await?;
        let quotas = [("cpu", "2"), ("memory", "8Gi")];
        objects::set_quota(&fixture.hub, fixture.namespace(), &quotas).await?;
        Ok(fixture)
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    /// Submits an object to the manager.
    pub(crate) async fn submit(&self, object: &Value) -> Result<()> {
        Ok(self.hub.apply(&object.to_string(), self.namespace()).await?)
    }

    /// The worker that a job was dispatched to: the one that has room.
    pub(crate) async fn until_placed(&self, job: &str) -> Result<&Cluster> {
        let place = (&self.hub, self.namespace());
        let placed = |one: &Workload| one.status.cluster_name.is_some();
        let workload = waits::until_workload(place, (job, "has a worker"), TIMEOUT, placed).await?;
        let name = workload.status.cluster_name.unwrap_or_default();
        ensure!(name == "worker-2", "{job} is on {name}, which is full");
        let worker = self.workers.iter().find(|worker| worker.name() == name);
        worker.with_context(|| format!("no worker {name}"))
    }

    /// The first pod with a label, once so many with it are ready.
    pub(crate) async fn until_ready(
        &self,
        worker: &Cluster,
        label: &str,
        count: usize,
    ) -> Result<Pod> {
        let pods: Api<Pod> = worker.api(self.namespace());
        let ready = |all: &[Pod]| all.iter().filter(|pod| is_ready(pod)).count() == count;
        let what = format!("{count} with {label} are ready");
        let ready = worker.until_all(&pods, label, &what, RAY_TIMEOUT, ready).await;
        if ready.is_err() {
            eprintln!("{}", self.logs(worker, label).await);
        }
        ready?.into_iter().next().context("a pod")
    }

    /// What the containers of pods with a label wrote, for the output of a test that fails.
    async fn logs(&self, worker: &Cluster, label: &str) -> String {
        let logs = ["logs", "-n", self.namespace(), "-l", label, "--all-containers", "--prefix"];
        worker.kubectl(&logs).await.unwrap_or_else(|error| error.to_string())
    }

    /// Objects of a kind of Ray on a cluster.
    pub(crate) fn rays(&self, cluster: &Cluster, kind: &str) -> Api<DynamicObject> {
        let plural = format!("{}s", kind.to_lowercase());
        let kind = GroupVersionKind::gvk("ray.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
        Api::namespaced_with(cluster.client(), self.namespace(), &resource)
    }

    /// The object of a kind on the manager, once its status has this value.
    pub(crate) async fn until_status(
        &self,
        (kind, name): (&str, &str),
        field: &str,
        value: &str,
    ) -> Result<DynamicObject> {
        let pointer = format!("/status/{field}");
        let holds =
            |object: &DynamicObject| object.data.pointer(&pointer).is_some_and(|it| it == value);
        let (what, rays) = (format!("has {field} {value}"), self.rays(&self.hub, kind));
        Ok(self.hub.until(&rays, name, &what, RAY_TIMEOUT, holds).await?)
    }

    /// Deletes an object of Ray on the manager.
    pub(crate) async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        let deleted = self.rays(&self.hub, kind).delete(name, &DeleteParams::background()).await;
        deleted.map(drop).with_context(|| format!("deleting {kind} {name}"))
    }

    /// Waits until no worker has a pod in the namespace.
    pub(crate) async fn until_no_pod_is_left(&self) -> Result<()> {
        for worker in &self.workers {
            waits::until_no_pod_is_left(worker, self.namespace(), 2 * TIMEOUT).await?;
        }
        Ok(())
    }
}

/// Whether a pod is ready, in containers of a real node.
fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let mut conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}

/// The container of a head or a worker. It requests less than Ray counts, which is whole processors.
pub(crate) fn container(name: &str, memory: &str) -> Value {
    json!({
        "name": name, "image": RAY_IMAGE,
        "resources": {
            "requests": {"cpu": "500m", "memory": memory}, "limits": {"memory": memory},
        },
    })
}

/// The spec of a RayCluster with a head and one worker.
pub(crate) fn cluster_spec() -> Value {
    let version = RAY_IMAGE.rsplit(':').next();
    let template = |name: &str, memory: &str| {
        json!({"spec": {
            "terminationGracePeriodSeconds": 2,
            "containers": [container(name, memory)],
        }})
    };
    json!({
        "rayVersion": version,
        "headGroupSpec": {"rayStartParams": {}, "template": template("head", "3Gi")},
        "workerGroupSpecs": [{
            "groupName": "workers", "replicas": 1, "minReplicas": 1, "maxReplicas": 1,
            "rayStartParams": {}, "template": template("worker", "2Gi"),
        }],
    })
}

/// The queue of every test.
pub(crate) fn in_queue(name: &str) -> Value {
    json!({"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}})
}

/// The name of a pod's node.
pub(crate) fn node_of(pod: &Pod) -> Result<&str> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.with_context(|| format!("{} has no node", pod.name_any()))
}
