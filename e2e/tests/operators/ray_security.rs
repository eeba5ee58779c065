//! RayClusters with what CodeFlare's operator adds: on a plain Kubernetes by the manager's webhooks and the agent, on OpenShift, which is
//! a worker with the definition of Routes, by the agent alone and then by both.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, NAMESPACE, TIMEOUT, root},
    objects,
};
use harness::{Cluster, LabPlan, RayHeads, Space, TestLab, secs};
use k8s_openapi::api::{
    core::v1::{Pod, Secret, ServiceAccount},
    networking::v1::{Ingress, NetworkPolicy},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep},
};

use crate::{fixture::cluster_spec, ray_oauth};

const PLAN: InstallationPlan = InstallationPlan { workers: 1, elects: false };

const PLAIN: &str = "kuberay: {rayDashboardOAuthEnabled: false, ingressDomain: example.com, certGeneratorImage: certs}";

const OPENSHIFT: &str =
    "kuberay: {ingressDomain: example.com, certGeneratorImage: certs, oauthProxyImage: proxy}";

/// The finalizer of a RayCluster with OAuth.
pub(crate) const FINALIZER: &str = "ray.openshift.ai/oauth-finalizer";

/// Of its own: other tests have RayClusters as they are submitted.
static LAB: OnceCell<TestLab> = OnceCell::const_new();

pub(crate) fn ray_clusters(cluster: &Cluster, space: &Space) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("ray.io", "v1", "RayCluster");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "rayclusters");
    Api::namespaced_with(cluster.client(), space.namespace(), &resource)
}

pub(crate) fn routes(worker: &Cluster, space: &Space) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("route.openshift.io", "v1", "Route");
    let routes = ApiResource::from_gvk_with_plural(&gvk, "routes");
    Api::namespaced_with(worker.client(), space.namespace(), &routes)
}

pub(crate) fn ray_cluster(name: &str) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": cluster_spec(1),
    }))?)
}

/// The objects with a prefix of their name, once there are so many.
pub(crate) async fn found<K>(worker: &Cluster, api: &Api<K>, prefixes: &[&str]) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Serialize
        + std::fmt::Debug
        + Send
        + 'static,
{
    let named = |all: &[K]| {
        let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
        prefixes.iter().all(|prefix| names.iter().any(|name| name.starts_with(prefix)))
    };
    let what = format!("{} are there", prefixes.join(" and "));
    Ok(worker.until_all(api, "", &what, 2 * TIMEOUT, named).await?)
}

pub(crate) fn names(list: &Value) -> Vec<&str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item["name"].as_str()).collect()
}

/// The head and the worker of a cluster, once both are there; pods of a dispatched cluster run as well.
pub(crate) async fn both_pods(
    worker: &Cluster,
    space: &Space,
    (cluster, run): (&str, bool),
) -> Result<Vec<Value>> {
    let pods: Api<Pod> = worker.api(space.namespace());
    let is_its = |pod: &Pod| {
        (!run || objects::phase(pod) == "Running")
            && pod.labels().get("ray.io/cluster").is_some_and(|it| it == cluster)
    };
    let holds = |all: &[Pod]| all.iter().filter(|pod| is_its(pod)).count() == 2;
    let what = format!("the pods of {cluster} are there");
    let all = worker.until_all(&pods, "", &what, 2 * TIMEOUT, holds).await?;
    all.iter().filter(|pod| is_its(pod)).map(|pod| Ok(serde_json::to_value(pod)?)).collect()
}

/// A dispatched RayCluster is changed on the manager cluster, and what its worker adds leaves it in sync.
#[tokio::test]
async fn ray_clusters_are_secured() -> Result<()> {
    let start = || TestLab::start(LabPlan { workers: PLAN.workers, audit: false });
    let lab = LAB.get_or_try_init(start).await?;
    let ports = InstallationPorts::choose()?;
    let heads = RayHeads::start().context("playing Ray heads")?;
    let secured = |text: &'static str| {
        let proxy = heads.proxy();
        async move {
            let installation = Installation::of(lab, PLAN, ports).await?;
            installation.with_operators(proxy).with_ray_security(text)
        }
    };
    let installation = secured(PLAIN).await?;
    installation.install().await?;
    let folder = root().join("crates/ray/manifests");
    installation.hub.apply_kustomization(&folder, NAMESPACE).await?;
    let frameworks = json!({"integrations": {"frameworks": ["batch/job", "ray.io/raycluster"]}});
    let manager = installation.first_manager_with(&frameworks).await?;
    installation.register().await?;
    let worker = installation.workers.first().context("a worker")?;
    let agent = installation.agent(worker, &[]).await?;
    let space = lab.space("secured").await?;
    worker.add_nodes(&objects::own_nodes(space.namespace(), 1, "8")).await?;
    objects::own_queue(&installation.hub, space.namespace(), "8", &["worker-1"]).await?;
    on_plain_kubernetes(&installation.hub, worker, &space).await.context("plain Kubernetes")?;

    agent.process.kill().await?;
    let route = root().join("e2e/tests/operators/route_definition.json").display().to_string();
    worker.kubectl(&["apply", "-f", &route]).await?;
    // The agent asks once. A definition without a status yet is an error of `kubectl wait`.
    let end = Instant::now() + TIMEOUT;
    while worker.kubectl(&["get", "--raw", "/apis/route.openshift.io/v1"]).await.is_err() {
        ensure!(Instant::now() < end, "Routes are not served");
        sleep(Duration::from_millis(200)).await;
    }
    let roles = root().join("config/worker/ray-security-openshift/roles.yaml");
    worker.kubectl(&["apply", "-f", &roles.display().to_string()]).await?;
    let on_routes = secured(OPENSHIFT).await?;
    let _agent = on_routes.agent(worker, &[]).await?;
    on_openshift(worker, &space).await.context("OpenShift")?;

    // The manager reads no Routes: what it adds for OAuth follows from its file.
    manager.process.kill().await?;
    let _manager = on_routes.first_manager_with(&frameworks).await?;
    ray_oauth::dispatched(&installation.hub, worker, &space)
        .await
        .context("dispatched to OpenShift")
}

async fn on_plain_kubernetes(hub: &Cluster, worker: &Cluster, space: &Space) -> Result<()> {
    let (on_hub, on_worker) = (ray_clusters(hub, space), ray_clusters(worker, space));
    let stored = on_hub.create(&PostParams::default(), &ray_cluster("c")?).await?;
    ensure!(stored.annotations().contains_key("ray.openshift.ai/version"), "{stored:?}");
    for pod in both_pods(worker, space, ("c", true)).await? {
        let spec = &pod["spec"];
        ensure!(names(&spec["initContainers"]).contains(&"create-cert"), "{spec}");
        ensure!(names(&spec["containers"][0]["env"]).contains(&"RAY_USE_TLS"), "{spec}");
    }
    let namespace = space.namespace();
    let policies: Api<NetworkPolicy> = worker.api(namespace);
    found(worker, &policies, &["c-head-", "c-workers-"]).await?;
    let ingresses: Api<Ingress> = worker.api(namespace);
    found(worker, &ingresses, &["ray-dashboard-c", "rayclient-c"]).await?;
    let secrets: Api<Secret> = worker.api(namespace);
    let authority = found(worker, &secrets, &["c-ca-secret-"]).await?;
    let data = authority.into_iter().find_map(|secret| secret.data).context("a CA")?;
    let certificate = String::from_utf8_lossy(&data["ca.crt"].0).into_owned();
    ensure!(data.contains_key("ca.key") && certificate.contains("BEGIN CERTIFICATE"));
    let ready = |it: &DynamicObject| it.data.pointer("/status/state") == Some(&json!("ready"));
    hub.until(&on_hub, "c", "is ready", 2 * TIMEOUT, ready).await?;

    // The copy has the form of the manager's, so the worker changes nothing of it, and is at rest.
    let copy = on_worker.get("c").await?;
    let (pods, copied) =
        ("/spec/workerGroupSpecs/0/template/spec/initContainers", copy.data.clone());
    ensure!(stored.data.pointer(pods) == copied.pointer(pods), "{copied}");
    let policy = policies.list(&kube::api::ListParams::default()).await?;
    sleep(secs(3)).await;
    let later = policies.list(&kube::api::ListParams::default()).await?;
    let versions = |all: &[NetworkPolicy]| -> Vec<Option<String>> {
        all.iter().map(ResourceExt::resource_version).collect()
    };
    ensure!(versions(&policy.items) == versions(&later.items), "policies are written again");
    ensure!(on_worker.get("c").await?.metadata.generation == copy.metadata.generation);

    // What is removed on the manager cluster comes back with the same write.
    let patch = json!({"spec": {"headGroupSpec": {"template": {"spec": {"initContainers": []}}}}});
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    let kept = on_hub.patch("c", &dry_run, &Patch::Merge(&patch)).await?;
    let head = kept.data.pointer("/spec/headGroupSpec/template/spec/initContainers");
    ensure!(names(head.unwrap_or(&Value::Null)) == ["create-cert"], "{head:?}");
    let mut open = ray_cluster("d")?;
    open.data["spec"]["headGroupSpec"]["enableIngress"] = json!(true);
    let refused = on_hub.create(&PostParams::default(), &open).await.err().context("refused")?;
    let words = "RayCluster with enableIngress set to true is not allowed";
    ensure!(refused.to_string().contains(words), "{refused}");

    on_hub.delete("c", &DeleteParams::background()).await?;
    let gone = <[DynamicObject]>::is_empty;
    worker.until_all(&on_worker, "", "no RayCluster is left", 2 * TIMEOUT, gone).await?;
    Ok(())
}

async fn on_openshift(worker: &Cluster, space: &Space) -> Result<()> {
    let clusters = ray_clusters(worker, space);
    clusters.create(&PostParams::default(), &ray_cluster("o")?).await?;
    // Without a queue no pod of it fits on the nodes of the test.
    let pods = both_pods(worker, space, ("o", false)).await?;
    let head = pods.iter().find(|pod| pod["metadata"]["labels"]["ray.io/node-type"] == "head");
    let head = head.context("a head")?;
    ensure!(names(&head["spec"]["containers"]).contains(&"oauth-proxy"), "{head}");
    let account = head["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    let accounts: Api<ServiceAccount> = worker.api(space.namespace());
    ensure!(account.starts_with("o-oauth-proxy-") && accounts.get_opt(account).await?.is_some());
    let bindings: Api<ClusterRoleBinding> = worker.cluster_api();
    let binding = format!("o-{}-auth-", space.namespace());
    found(worker, &bindings, &[&binding]).await?;
    let routes = routes(worker, space);
    let all = |all: &[DynamicObject]| all.len() == 2;
    worker.until_all(&routes, "", "two Routes are there", 2 * TIMEOUT, all).await?;
    let stored = clusters.get("o").await?;
    ensure!(stored.finalizers().iter().any(|it| it == FINALIZER));

    clusters.delete("o", &DeleteParams::background()).await?;
    let gone = <[DynamicObject]>::is_empty;
    worker.until_all(&clusters, "", "no RayCluster is left", 2 * TIMEOUT, gone).await?;
    let none =
        |all: &[ClusterRoleBinding]| !all.iter().any(|it| it.name_any().starts_with(&binding));
    worker.until_all(&bindings, "", "the binding is gone", TIMEOUT, none).await?;
    Ok(())
}
