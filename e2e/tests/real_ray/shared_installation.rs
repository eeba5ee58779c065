//! The installation that the tests share: two workers with agents that operate Ray, and the image of Ray where there is room.

use anyhow::{Context, Result};
use e2e::installation::{
    Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT, operated_kinds,
};
use e2e::objects::phase;
use harness::{Cluster, LabPlan, ServiceProxy, TestLab, program};
use images::ray;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use lab::real_nodes::configuration::BUSYBOX_IMAGE;
use lab::real_nodes::node::RealNodeCounts;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

const PLAN: InstallationPlan = InstallationPlan { workers: 2, elects: false };

const NODES: RealNodeCounts = RealNodeCounts { manager: 0, each_worker: 1, more_of_last: 0 };

/// The place of the worker that has room, and the image, among the workers.
const ROOMY: usize = 1;

/// A pod on the other worker, so large that nothing else fits.
const FILLER: &str = "filler";

/// Control planes, manager and agents.
pub(crate) struct SharedInstallation {
    pub(crate) lab: TestLab,
    ports: InstallationPorts,
    services: ServiceProxy,
    _programs: Vec<Program>,
}

static SHARED: OnceCell<SharedInstallation> = OnceCell::const_new();

impl SharedInstallation {
    pub(crate) async fn get() -> Result<&'static Self> {
        SHARED.get_or_try_init(Self::build).await
    }

    async fn build() -> Result<Self> {
        let archive = spawn_blocking(|| ray::find(&|line| eprintln!("{line}"))).await??;
        let plan = LabPlan { workers: PLAN.workers, audit: false };
        let lab = TestLab::start_with_real_nodes(plan, NODES).await?;
        let workers: Vec<_> = lab.state().clusters.iter().skip(1).cloned().collect();
        let services = ServiceProxy::start(&workers).context("starting the proxy to Ray heads")?;
        let ports = InstallationPorts::choose()?;
        let mut shared = Self { lab, ports, services, _programs: Vec::new() };
        let installation = shared.installation().await?;
        let roomy = installation.workers.get(ROOMY).context("two workers")?;
        let nodes = roomy.state().real_nodes.iter().map(|node| roomy.running_node(node));
        let (nodes, tool) = (nodes.collect::<Result<Vec<_>, _>>()?, program("sluice-lab")?);
        let import =
            spawn_blocking(move || nodes.iter().try_for_each(|node| node.import(&tool, &archive)));
        let programs = install(&installation).await?;
        import.await?.context("importing the image of Ray")?;
        drop(installation);
        shared._programs = programs;
        Ok(shared)
    }

    /// Clients of this test's runtime.
    pub(crate) async fn installation(&self) -> Result<Installation<'_>> {
        let installation = Installation::of(&self.lab, PLAN, self.ports).await?;
        Ok(installation.with_operators(self.services.address()))
    }
}

/// Installs and starts everything. The agents see the filler with their first look.
async fn install(installation: &Installation<'_>) -> Result<Vec<Program>> {
    for worker in installation.workers.iter().take(ROOMY) {
        fill(worker).await.with_context(|| format!("filling {}", worker.name()))?;
    }
    installation.install().await?;
    operated_kinds(&installation.hub).await?;
    let frameworks = json!(["pod", "ray.io/raycluster", "ray.io/rayjob"]);
    let settings = json!({"integrations": {"frameworks": frameworks}});
    let mut programs = vec![installation.first_manager_with(&settings).await?];
    for worker in &installation.workers {
        programs.push(installation.agent(worker, &[]).await?);
    }
    installation.register().await?;
    Ok(programs)
}

/// Takes all processors of a worker's node.
async fn fill(worker: &Cluster) -> Result<()> {
    let name = &worker.state().real_nodes.first().context("a real node")?.name;
    let node = worker.cluster_api::<Node>().get(name).await?;
    let allocatable = node.status.and_then(|status| status.allocatable).unwrap_or_default();
    let processors = allocatable.get("cpu").context("its processors")?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": FILLER},
        "spec": {"nodeName": name, "terminationGracePeriodSeconds": 1, "containers": [{
            "name": "main", "image": BUSYBOX_IMAGE, "command": ["sleep", "100000"],
            "resources": {"requests": {"cpu": processors}},
        }]},
    });
    worker.apply(&pod.to_string(), "default").await?;
    let runs = |pod: &Pod| phase(pod) == "Running";
    let pods: Api<Pod> = worker.api("default");
    worker.until(&pods, FILLER, "runs", TIMEOUT, runs).await?;
    Ok(())
}
