//! A namespace with two flavors, one node each, and a queue that makes variants.

use anyhow::{Context, Result};
use crds::{
    meta::{find, is_true},
    v1beta2::{ClusterQueue, Workload},
};
pub(crate) use e2e::objects::LONG;
use e2e::{
    installation::{Installation, TIMEOUT},
    manager_lab::{KeptManager, ManagerLab},
    objects,
};
use harness::{Cluster, NodeSpec, Space};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The node label of a flavor.
const FLAVOR: &str = "lab.sluice.dev/flavor";

const API: &str = "kueue.x-k8s.io/v1beta2";

static SHARED: OnceCell<ManagerLab> = OnceCell::const_new();

/// A namespace with two flavors, and a queue that makes variants.
pub(crate) struct VariantsFixture {
    space: Space,
    pub(crate) hub: Cluster,
    installation: Installation<'static>,
    manager: Option<KeptManager<'static>>,
}

async fn shared() -> Result<&'static ManagerLab> {
    let configuration = json!({
        "integrations": {"frameworks": ["batch/job"]},
        "featureGates": {"ConcurrentAdmission": true},
    });
    SHARED.get_or_try_init(|| ManagerLab::start_with(configuration)).await
}

impl VariantsFixture {
    /// With the flavors `best` and `worse` of so many cpus.
    pub(crate) async fn new(test: &str, mode: &str, quota: [&str; 2]) -> Result<Self> {
        let shared = shared().await?;
        let installation = shared.installation().await?;
        let space = installation.lab.space(test).await?;
        let hub = installation.hub.clone();
        let manager = Some(shared.keep_manager().await);
        let fixture = Self { space, hub, installation, manager };
        let flavors = ["best", "worse"].map(|name| fixture.flavor(name));
        for flavor in &flavors {
            let labels = [(FLAVOR.to_owned(), flavor.clone())].into();
            let nodes = NodeSpec { labels, ..objects::nodes(flavor, 1, "8") };
            fixture.hub.add_nodes(&nodes).await?;
        }
        let class = format!("{}-low", fixture.namespace());
        let mut objects = vec![
            json!({"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": class},
                "value": -1}),
            json!({"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": fixture.namespace()},
            "spec": {
                "namespaceSelector": {},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "concurrentAdmissionPolicy": {"migration": {"mode": mode}},
                "resourceGroups": fixture.quota(quota),
            }}),
            json!({"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": "queue"},
                "spec": {"clusterQueue": fixture.namespace()}}),
        ];
        objects.extend(flavors.iter().map(|flavor| {
            json!({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": flavor},
                "spec": {"nodeLabels": {FLAVOR: flavor}}})
        }));
        let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
        fixture.hub.apply(&text.join("\n---\n"), fixture.namespace()).await?;
        Ok(fixture)
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    /// The name of a flavor of this test.
    pub(crate) fn flavor(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace())
    }

    fn quota(&self, [best, worse]: [&str; 2]) -> Value {
        let flavor = |name: &str, cpus: &str| json!({"name": self.flavor(name), "resources": [{"name": "cpu", "nominalQuota": cpus}]});
        json!([{"coveredResources": ["cpu"], "flavors": [flavor("best", best), flavor("worse", worse)]}])
    }

    pub(crate) async fn change_quota(&self, quota: [&str; 2]) -> Result<()> {
        let queues = self.hub.cluster_api::<ClusterQueue>();
        let patch = Patch::Merge(json!({"spec": {"resourceGroups": self.quota(quota)}}));
        queues.patch(self.namespace(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        self.hub.api(self.namespace())
    }

    pub(crate) fn workloads(&self) -> Api<Workload> {
        self.hub.api(self.namespace())
    }

    /// Creates a Job of so many pods of one cpu, of low priority or not.
    pub(crate) async fn submit(
        &self,
        name: &str,
        pods: usize,
        seconds: u32,
        low: bool,
    ) -> Result<()> {
        let mut job = objects::job(name, pods, "1", seconds);
        job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
        if low {
            let class = format!("{}-low", self.namespace());
            job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!(class);
        }
        self.jobs().create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, job: &str) -> Result<()> {
        self.jobs().delete(job, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Ends the manager and starts another one.
    pub(crate) async fn restart_manager(&mut self) -> Result<()> {
        self.manager = None;
        self.manager = Some(shared().await?.restart_manager(&self.installation).await?);
        Ok(())
    }

    /// Waits until the Workload of a Job is admitted with a flavor.
    pub(crate) async fn until_admitted(&self, job: &str, flavor: &str) -> Result<Workload> {
        let flavor = self.flavor(flavor);
        let what = format!("{job} is admitted with {flavor}");
        let holds = |one: &Workload| {
            one.owner_references().iter().any(|owner| owner.kind == "Job" && owner.name == job)
                && is_true(&one.status.conditions, "Admitted")
                && !is_true(&one.status.conditions, "Evicted")
                && admitted_flavor(one) == Some(flavor.as_str())
        };
        let all = self.until_workloads(&what, |all| all.iter().any(holds)).await?;
        all.into_iter().find(holds).context("the Workload")
    }

    /// Waits until this holds for the Workloads of the namespace.
    pub(crate) async fn until_workloads(
        &self,
        what: &str,
        holds: impl Fn(&[Workload]) -> bool,
    ) -> Result<Vec<Workload>> {
        Ok(self.hub.until_all(&self.workloads(), "", what, 2 * TIMEOUT, holds).await?)
    }

    /// Waits until so many pods of a Job run, all on the node of a flavor.
    pub(crate) async fn until_runs_on(&self, job: &str, flavor: &str, pods: usize) -> Result<()> {
        let node = format!("{}-1", self.flavor(flavor));
        let what = format!("{pods} pods of {job} run on {node}");
        let there = |all: &[Pod]| {
            let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
            let runs = |pod: &Pod| {
                let place = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                objects::phase(pod) == "Running" && place == Some(node.as_str())
            };
            let pods_left: Vec<&Pod> = all.iter().filter(stays).collect();
            pods_left.len() == pods && pods_left.iter().all(|pod| runs(pod))
        };
        let labels = format!("batch.kubernetes.io/job-name={job}");
        let api = self.hub.api(self.namespace());
        self.hub.until_all(&api, &labels, &what, 2 * TIMEOUT, there).await?;
        Ok(())
    }

    /// Waits until the ClusterQueue shows these used cpus per flavor, and so many admitted Workloads.
    pub(crate) async fn until_used(&self, [best, worse]: [&str; 2], admitted: i32) -> Result<()> {
        let used = |queue: &ClusterQueue, name: &str| {
            let flavor = self.flavor(name);
            let flavors = queue.status.flavors_usage.iter().filter(|one| one.name == flavor);
            let mut totals =
                flavors.flat_map(|one| &one.resources).filter_map(|one| one.total.as_ref());
            totals.next().map(ToString::to_string)
        };
        let uses = |queue: &ClusterQueue| {
            used(queue, "best").as_deref() == Some(best)
                && used(queue, "worse").as_deref() == Some(worse)
                && queue.status.admitted_workloads == admitted
        };
        let what = format!("{best} and {worse} cpus are used by {admitted} Workloads");
        let queues = self.hub.cluster_api::<ClusterQueue>();
        self.hub.until(&queues, self.namespace(), &what, 2 * TIMEOUT, uses).await?;
        Ok(())
    }

    /// Waits for an Event with this reason.
    pub(crate) async fn until_event(&self, reason: &str) -> Result<()> {
        let events: Api<Event> = self.hub.api(self.namespace());
        let there = |all: &[Event]| all.iter().any(|one| one.reason.as_deref() == Some(reason));
        self.hub.until_all(&events, "", reason, TIMEOUT, there).await?;
        Ok(())
    }

    /// The variant of a Job for a flavor.
    pub(crate) fn variant<'a>(
        &self,
        all: &'a [Workload],
        job: &str,
        flavor: &str,
    ) -> Option<&'a Workload> {
        let start = format!("job-{job}-variant-{}-", self.flavor(flavor));
        all.iter().find(|one| one.name_any().starts_with(&start))
    }
}

/// The flavor of an admission.
pub(crate) fn admitted_flavor(workload: &Workload) -> Option<&str> {
    let sets = &workload.status.admission.as_ref()?.pod_set_assignments;
    sets.first()?.flavors.values().next().map(String::as_str)
}

/// The reason of the end of a Workload; empty while it is not over.
pub(crate) fn ended(workload: &Workload) -> &str {
    let end = find(&workload.status.conditions, "Finished").filter(|one| one.status == "True");
    end.map_or("", |one| one.reason.as_str())
}
