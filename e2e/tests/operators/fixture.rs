//! The installation that all tests share: a manager cluster, and two workers with agents that operate Ray and AppWrapper. Most
//! tests use one.

use anyhow::{Context, Result, bail, ensure};
use crds::v1beta2::Workload;
use e2e::{
    installation::{
        Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT, first_user,
        operated_kinds,
    },
    listed_pods::are_listed,
    objects, waits,
};
use harness::{Cluster, LabPlan, RayHeads, Space, TestLab, free_port};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
    config::AuthInfo,
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

const PLAN: InstallationPlan = InstallationPlan { workers: 2, elects: false };

const FRAMEWORKS: &[&str] = &[
    "batch/job",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "workload.codeflare.dev/appwrapper",
];

struct SharedInstallation {
    lab: TestLab,
    ports: InstallationPorts,
    heads: RayHeads,
    agent: Mutex<Option<Program>>,
    /// Where the API of Ray clusters is served.
    ray_api: u16,
    _programs: [Program; 3],
}

static SHARED: OnceCell<SharedInstallation> = OnceCell::const_new();

/// A namespace on both clusters, with a queue over the worker and nodes there.
pub(crate) struct OperatorFixture {
    shared: &'static SharedInstallation,
    pub(crate) space: Space,
    pub(crate) hub: Cluster,
    pub(crate) worker: Cluster,
    /// The other worker, which has no nodes for the namespace.
    pub(crate) second: Cluster,
}

impl SharedInstallation {
    async fn build() -> Result<Self> {
        let lab = TestLab::start(LabPlan { workers: PLAN.workers, audit: false }).await?;
        let ports = InstallationPorts::choose()?;
        let heads = RayHeads::start().context("playing Ray heads")?;
        let installation = Installation::of(&lab, PLAN, ports).await?.with_operators(heads.proxy());
        installation.install().await?;
        operated_kinds(&installation.hub).await?;
        let frameworks = json!({"integrations": {"frameworks": FRAMEWORKS}});
        let manager = installation.first_manager_with(&frameworks).await?;
        installation.register().await?;
        let [first, second] = &installation.workers[..] else { bail!("two workers") };
        let agent = installation.agent(first, &[]).await?;
        let other = installation.agent(second, &[]).await?;
        let ray_api = free_port()?;
        let served = installation.ray_api(ray_api).await?;
        drop(installation);
        let (agent, programs) = (Mutex::new(Some(agent)), [manager, served, other]);
        Ok(Self { lab, ports, heads, agent, ray_api, _programs: programs })
    }

    async fn installation(&'static self) -> Result<Installation<'static>> {
        let installation = Installation::of(&self.lab, PLAN, self.ports).await?;
        Ok(installation.with_operators(self.heads.proxy()))
    }
}

impl OperatorFixture {
    /// With a queue over the first worker.
    pub(crate) async fn new(test: &str) -> Result<Self> {
        Self::over(test, &["worker-1"]).await
    }

    /// With a queue over these workers.
    pub(crate) async fn over(test: &str, workers: &[&str]) -> Result<Self> {
        let shared = SHARED.get_or_try_init(SharedInstallation::build).await?;
        let installation = shared.installation().await?;
        let space = installation.lab.space(test).await?;
        let (hub, namespace) = (installation.hub, space.namespace());
        let mut all = installation.workers.into_iter();
        let (worker, second) = all.next().zip(all.next()).context("two workers")?;
        worker.add_nodes(&objects::own_nodes(namespace, 1, "8")).await?;
        objects::own_queue(&hub, namespace, "8", workers).await?;
        Ok(Self { shared, space, hub, worker, second })
    }

    pub(crate) fn heads(&self) -> &RayHeads {
        &self.shared.heads
    }

    /// A client of the API of Ray clusters; of a service account of the manager cluster, which is created, or of no user.
    pub(crate) async fn ray_api(&self, account: Option<&str>) -> Result<Client> {
        let namespace = self.space.namespace();
        let user = match account {
            Some(name) => {
                let account = json!({
                    "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name},
                });
                self.hub.apply(&account.to_string(), namespace).await?;
                first_user(self.hub.kubeconfig_for(namespace, name).await?)?
            }
            None => AuthInfo::default(),
        };
        let installation = self.shared.installation().await?;
        installation.client_of("sluice-ray-api-cert", self.shared.ray_api, user).await
    }

    /// Kills the agent and starts another one.
    pub(crate) async fn restart_agent(&self) -> Result<()> {
        let mut agent = self.shared.agent.lock().await;
        if let Some(old) = agent.take() {
            old.process.kill().await?;
        }
        let installation = self.shared.installation().await?;
        let worker = installation.workers.first().context("a worker")?;
        *agent = Some(installation.agent(worker, &[]).await?);
        Ok(())
    }

    pub(crate) async fn submit(&self, object: &Value) -> Result<()> {
        let api = self.api(&self.hub, object["kind"].as_str().unwrap_or_default());
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        api.create(&PostParams::default(), &object).await.context("submitting")?;
        Ok(())
    }

    pub(crate) fn api(&self, cluster: &Cluster, kind: &str) -> Api<DynamicObject> {
        let (group, version, plural) = match kind {
            "AppWrapper" => ("workload.codeflare.dev", "v1beta2", "appwrappers"),
            "RayJob" => ("ray.io", "v1", "rayjobs"),
            "RayService" => ("ray.io", "v1", "rayservices"),
            _ => ("ray.io", "v1", "rayclusters"),
        };
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        Api::namespaced_with(cluster.client(), self.space.namespace(), &resource)
    }

    /// Until an object of a cluster has this value at a pointer of its status.
    pub(crate) async fn until_status(
        &self,
        cluster: &Cluster,
        (kind, name): (&str, &str),
        pointer: &str,
        value: &str,
    ) -> Result<DynamicObject> {
        let holds =
            |object: &DynamicObject| object.data.pointer(pointer).is_some_and(|it| it == value);
        let what = format!("has {value} at {pointer}");
        Ok(cluster.until(&self.api(cluster, kind), name, &what, 2 * TIMEOUT, holds).await?)
    }

    /// Until so many pods of a type of Ray's nodes run on the worker.
    pub(crate) async fn until_running(&self, node_type: &str, count: usize) -> Result<Vec<Pod>> {
        self.until_running_on(&self.worker, node_type, count).await
    }

    pub(crate) async fn until_running_on(
        &self,
        cluster: &Cluster,
        node_type: &str,
        count: usize,
    ) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = cluster.api(self.space.namespace());
        let of_type =
            |pod: &Pod| pod.labels().get("ray.io/node-type").is_some_and(|it| it == node_type);
        let holds = |all: &[Pod]| {
            let mut of_type = all.iter().filter(|pod| of_type(pod)).peekable();
            of_type.peek().is_some() == (count > 0)
                && all.iter().filter(|pod| of_type_runs(pod, node_type)).count() == count
        };
        let what = format!("{count} pods of {node_type} run");
        let all = cluster.until_all(&pods, "", &what, 2 * TIMEOUT, holds).await?;
        Ok(all.into_iter().filter(of_type).collect())
    }

    /// The manager lists so many pods of the only Workload.
    pub(crate) async fn until_listed(&self, number: usize) -> Result<()> {
        let namespace = self.space.namespace();
        let workloads: Api<Workload> = self.hub.api(namespace);
        let all = workloads.list(&ListParams::default()).await?.items;
        let workload = all.first().context("a Workload")?.name_any();
        let installation = self.shared.installation().await?;
        are_listed(&installation, (namespace, &workload), number).await
    }

    /// Until no pod and no operated object is left on the workers.
    pub(crate) async fn until_nothing_left(&self) -> Result<()> {
        for worker in [&self.worker, &self.second] {
            waits::until_no_pod_is_left(worker, self.space.namespace(), 2 * TIMEOUT).await?;
            for kind in ["AppWrapper", "RayJob", "RayService", "RayCluster"] {
                let api = self.api(worker, kind);
                let what = format!("no {kind} is left");
                let gone = <[DynamicObject]>::is_empty;
                worker.until_all(&api, "", &what, 2 * TIMEOUT, gone).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        let deleted = self.api(&self.hub, kind).delete(name, &DeleteParams::background()).await;
        ensure!(deleted.is_ok(), "deleting {kind} {name}: {deleted:?}");
        Ok(())
    }
}

fn of_type_runs(pod: &Pod, node_type: &str) -> bool {
    pod.labels().get("ray.io/node-type").is_some_and(|it| it == node_type)
        && pod.metadata.deletion_timestamp.is_none()
        && objects::phase(pod) == "Running"
}

/// The spec of a RayCluster: a head, and workers of one core each.
pub(crate) fn cluster_spec(workers: u32) -> Value {
    let template = |name: &str| {
        json!({"spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": name, "image": "ray",
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            }],
        }})
    };
    json!({
        "headGroupSpec": {"rayStartParams": {}, "template": template("head")},
        "workerGroupSpecs": [{
            "groupName": "workers", "replicas": workers, "minReplicas": 0, "maxReplicas": 5,
            "rayStartParams": {}, "template": template("worker"),
        }],
    })
}
