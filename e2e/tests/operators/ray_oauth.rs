//! A RayCluster with a proxy that asks for the user, dispatched to a worker that is an OpenShift.

use anyhow::{Context, Result, ensure};
use e2e::installation::TIMEOUT;
use harness::{Cluster, Space};
use k8s_openapi::api::{
    core::v1::{Secret, Service, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::ray_security::{FINALIZER, both_pods, found, names, ray_cluster, ray_clusters, routes};

/// What the webhook of the manager adds is what the copy has, the agent makes the rest on the worker, and all of it goes with the
/// RayCluster of the manager cluster.
pub(crate) async fn dispatched(hub: &Cluster, worker: &Cluster, space: &Space) -> Result<()> {
    let (on_hub, on_worker) = (ray_clusters(hub, space), ray_clusters(worker, space));
    let stored = on_hub.create(&PostParams::default(), &ray_cluster("p")?).await?;
    let head = pod_spec(&stored, "/spec/headGroupSpec")?;
    ensure!(names(&head["containers"]).contains(&"oauth-proxy"), "{head}");
    ensure!(names(&head["volumes"]).contains(&"proxy-tls-secret"), "{head}");
    let account = head["serviceAccountName"].as_str().unwrap_or_default().to_owned();
    ensure!(account.starts_with("p-oauth-proxy"), "{account}");
    let pods = both_pods(worker, space, ("p", true)).await?;
    let proxies =
        pods.iter().filter(|pod| names(&pod["spec"]["containers"]).contains(&"oauth-proxy"));
    ensure!(proxies.count() == 1, "the head alone has the proxy");
    let ready = |it: &DynamicObject| it.data.pointer("/status/state") == Some(&json!("ready"));
    hub.until(&on_hub, "p", "is ready", 2 * TIMEOUT, ready).await?;

    let copy = on_worker.get("p").await?;
    for group in ["/spec/headGroupSpec", "/spec/workerGroupSpecs/0"] {
        let (stored, copied) = (pod_spec(&stored, group)?, pod_spec(&copy, group)?);
        for field in ["containers", "initContainers", "volumes", "serviceAccountName"] {
            let sides = (&stored[field], &copied[field]);
            ensure!(sides.0 == sides.1, "{field} of {group}: {sides:?}");
        }
    }
    ensure!(copy.finalizers().iter().any(|it| it == FINALIZER), "{:?}", copy.metadata);
    let with_finalizer = on_hub.get("p").await?;
    ensure!(!with_finalizer.finalizers().iter().any(|it| it == FINALIZER), "the worker's alone");
    let namespace = space.namespace();
    let made = Made::on(worker, space);
    found(worker, &made.accounts, &[&account]).await?;
    found(worker, &made.secrets, &["p-ca-secret", "p-oauth-config"]).await?;
    found(worker, &made.services, &["p-oauth", "p-head-svc"]).await?;
    let binding = format!("p-{namespace}-auth");
    found(worker, &made.bindings, &[&binding]).await?;
    let both = |all: &[DynamicObject]| {
        ["ray-dashboard-p", "rayclient-p"]
            .iter()
            .all(|start| all.iter().any(|route| route.name_any().starts_with(start)))
    };
    worker.until_all(&made.routes, "", "its Routes are there", TIMEOUT, both).await?;
    let later = on_worker.get("p").await?;
    ensure!(later.metadata.generation == copy.metadata.generation, "the copy is changed again");
    ensure!(later.metadata.uid == copy.metadata.uid, "the copy is made again");

    on_hub.delete("p", &DeleteParams::background()).await?;
    let gone = <[DynamicObject]>::is_empty;
    hub.until_all(&on_hub, "", "the RayCluster is gone", 2 * TIMEOUT, gone).await?;
    worker.until_all(&on_worker, "", "its copy is gone", 2 * TIMEOUT, gone).await?;
    made.until_gone(worker, &binding).await
}

/// Objects that the agent makes for a RayCluster.
struct Made {
    accounts: Api<ServiceAccount>,
    secrets: Api<Secret>,
    services: Api<Service>,
    bindings: Api<ClusterRoleBinding>,
    routes: Api<DynamicObject>,
}

impl Made {
    fn on(worker: &Cluster, space: &Space) -> Self {
        let namespace = space.namespace();
        Self {
            accounts: worker.api(namespace),
            secrets: worker.api(namespace),
            services: worker.api(namespace),
            bindings: worker.cluster_api(),
            routes: routes(worker, space),
        }
    }

    /// Until the binding, and what the RayCluster owned, is gone.
    async fn until_gone(&self, worker: &Cluster, binding: &str) -> Result<()> {
        let unbound =
            |all: &[ClusterRoleBinding]| !all.iter().any(|it| it.name_any().starts_with(binding));
        worker.until_all(&self.bindings, "", "the binding is gone", TIMEOUT, unbound).await?;
        let no_account =
            |all: &[ServiceAccount]| !all.iter().any(|it| it.name_any().starts_with("p-oauth"));
        worker.until_all(&self.accounts, "", "the account is gone", TIMEOUT, no_account).await?;
        let no_secret = |all: &[Secret]| !all.iter().any(|it| it.name_any().starts_with("p-"));
        worker.until_all(&self.secrets, "", "the Secrets are gone", TIMEOUT, no_secret).await?;
        let no_service = |all: &[Service]| !all.iter().any(|it| it.name_any().starts_with("p-"));
        worker.until_all(&self.services, "", "the Services are gone", TIMEOUT, no_service).await?;
        let no_route = <[DynamicObject]>::is_empty;
        worker.until_all(&self.routes, "", "no Route is left", TIMEOUT, no_route).await?;
        Ok(())
    }
}

fn pod_spec(cluster: &DynamicObject, group: &str) -> Result<Value> {
    let spec = cluster.data.pointer(&format!("{group}/template/spec"));
    spec.cloned().with_context(|| format!("{group} has no template: {}", cluster.data))
}
