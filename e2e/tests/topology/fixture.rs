//! A namespace with nodes of its own in two blocks of two racks each, a Topology, a flavor and queues over them.

use std::collections::BTreeMap;

use anyhow::Result;
use crds::v1beta2::{Workload, WorkloadStatus};
pub(crate) use e2e::objects::LONG;
use e2e::{
    installation::{Installation, TIMEOUT},
    manager_lab::ManagerLab,
    objects::{self, OWN},
    waits,
};
use harness::{Cluster, NodeSpec, Space, annotation};
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Node label of a block.
pub(crate) const BLOCK: &str = "lab.sluice.dev/block";

/// Node label of a rack.
pub(crate) const RACK: &str = "lab.sluice.dev/rack";

/// Node label of a node.
pub(crate) const HOST: &str = "kubernetes.io/hostname";

/// The gate of the topology.
const GATE: &str = "kueue.x-k8s.io/topology";

static SHARED: OnceCell<ManagerLab> = OnceCell::const_new();

/// A namespace with nodes of its own in two blocks of two racks each.
pub(crate) struct TopologyFixture {
    pub(crate) space: Space,
    pub(crate) hub: Cluster,
    installation: Installation<'static>,
}

pub(crate) async fn shared() -> Result<&'static ManagerLab> {
    SHARED.get_or_try_init(|| ManagerLab::start(&["batch/job", "pod"])).await
}

impl TopologyFixture {
    /// With so many nodes of 4 cpus in each rack.
    pub(crate) async fn new(test: &str, nodes_per_rack: usize) -> Result<Self> {
        let installation = shared().await?.installation().await?;
        let space = installation.lab.space(test).await?;
        let hub = installation.hub.clone();
        let fixture = Self { space, hub, installation };
        fixture.queues().await?;
        for rack in ["a1", "a2", "b1", "b2"] {
            fixture.add_rack(rack, nodes_per_rack).await?;
        }
        Ok(fixture)
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        self.hub.api(self.namespace())
    }

    /// Ends the manager and starts another one.
    pub(crate) async fn restart_manager(&self) -> Result<()> {
        drop(shared().await?.restart_manager(&self.installation).await?);
        Ok(())
    }

    /// The name of a rack of this test. Its block is the first letter.
    pub(crate) fn rack(&self, rack: &str) -> String {
        format!("{}-{rack}", self.namespace())
    }

    pub(crate) async fn add_rack(&self, rack: &str, nodes: usize) -> Result<()> {
        let taint = Taint {
            key: OWN.to_owned(),
            value: Some(self.namespace().to_owned()),
            effect: "NoSchedule".to_owned(),
            time_added: None,
        };
        let labels = [
            (OWN, self.namespace().to_owned()),
            (BLOCK, self.rack(&rack[..1])),
            (RACK, self.rack(rack)),
        ];
        let spec = NodeSpec {
            prefix: self.rack(rack),
            count: nodes,
            cpu: "4".to_owned(),
            labels: labels.map(|(key, value)| (key.to_owned(), value)).into(),
            taints: vec![taint],
            ..NodeSpec::default()
        };
        Ok(self.hub.add_nodes(&spec).await?)
    }

    /// Creates the Topology and the queues while the webhooks answer: another test may restart the manager.
    async fn queues(&self) -> Result<()> {
        let _answers = shared().await?.keep_manager().await;
        let (api, name) = ("kueue.x-k8s.io/v1beta2", self.namespace());
        let toleration = json!({"key": OWN, "value": name, "effect": "NoSchedule"});
        let objects = [
            json!({
                "apiVersion": api, "kind": "Topology", "metadata": {"name": name},
                "spec": {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": RACK}, {"nodeLabel": HOST}]},
            }),
            json!({
                "apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": name},
                "spec": {"nodeLabels": {OWN: name}, "tolerations": [toleration], "topologyName": name},
            }),
            json!({
                "apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": name},
                "spec": {
                    "namespaceSelector": {},
                    "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                        {"name": name, "resources": [{"name": "cpu", "nominalQuota": "100"}]},
                    ]}],
                },
            }),
            json!({
                "apiVersion": api, "kind": "LocalQueue", "metadata": {"name": "queue", "namespace": name},
                "spec": {"clusterQueue": name},
            }),
        ];
        let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
        Ok(self.hub.apply(&text.join("\n---\n"), name).await?)
    }

    /// Submits an indexed Job of so many pods of 2 cpus each, with this annotation on its pods.
    pub(crate) async fn submit(
        &self,
        name: &str,
        pods: usize,
        topology: (&str, &str),
    ) -> Result<()> {
        let mut job = objects::job(name, pods, "2", LONG);
        job["spec"]["completionMode"] = json!("Indexed");
        job["spec"]["template"]["metadata"]["annotations"][topology.0] = json!(topology.1);
        self.create_job(job).await
    }

    pub(crate) async fn create_job(&self, job: Value) -> Result<()> {
        let jobs: Api<k8s_openapi::api::batch::v1::Job> = self.hub.api(self.namespace());
        let _answers = shared().await?.keep_manager().await;
        jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        Ok(())
    }

    /// Creates a pod while the webhooks answer: another test may restart the manager.
    pub(crate) async fn create_pod(&self, pod: Value) -> Result<()> {
        let _answers = shared().await?.keep_manager().await;
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        Ok(())
    }

    /// Waits until so many pods of a Job run, and no gate is left on them. Returns them by index.
    pub(crate) async fn until_running(&self, job: &str, count: usize) -> Result<Vec<Pod>> {
        let labels = format!("batch.kubernetes.io/job-name={job}");
        let what = format!("{count} pods of {job} run");
        let all = |pods: &[Pod]| pods.iter().filter(|pod| runs(pod)).count() == count;
        let pods = self.hub.until_all(&self.pods(), &labels, &what, 2 * TIMEOUT, all).await?;
        let mut pods: Vec<Pod> = pods.into_iter().filter(runs).collect();
        pods.sort_by_key(index);
        Ok(pods)
    }

    /// Waits until this holds for the Workload of a Job.
    pub(crate) async fn until_workload(
        &self,
        job: &str,
        what: &str,
        holds: impl Fn(&WorkloadStatus) -> bool,
    ) -> Result<Workload> {
        let place = (&self.hub, self.namespace());
        let holds = |one: &Workload| holds(&one.status);
        waits::until_workload(place, (job, what), 2 * TIMEOUT, holds).await
    }

    pub(crate) async fn until_pending(&self, job: &str) -> Result<Workload> {
        let pending = |status: &WorkloadStatus| {
            let found = crds::meta::find(&status.conditions, "QuotaReserved");
            found.is_some_and(|one| one.status == "False" && one.message.contains("topology"))
        };
        self.until_workload(job, "waits for room in the topology", pending).await
    }

    /// Racks of the nodes that these pods run on, with the number of pods.
    pub(crate) async fn racks(&self, pods: &[Pod], level: &str) -> Result<BTreeMap<String, usize>> {
        let nodes: Api<Node> = self.hub.cluster_api();
        let mut racks = BTreeMap::new();
        for pod in pods {
            let node = nodes.get(&node_of(pod)).await?;
            let rack = node.labels().get(level).cloned().unwrap_or_default();
            *racks.entry(rack).or_default() += 1;
        }
        Ok(racks)
    }

    /// Puts a taint on a node that no pod tolerates.
    pub(crate) async fn break_node(&self, name: &str) -> Result<()> {
        let nodes: Api<Node> = self.hub.cluster_api();
        let mut taints =
            nodes.get(name).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let (key, effect) = ("lab.sluice.dev/broken".to_owned(), "NoExecute".to_owned());
        taints.push(Taint { key, effect, value: None, time_added: None });
        let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
        nodes.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

/// A pod that no Workload accounts for, on a node of this test.
pub(crate) fn other_pod(fixture: &TopologyFixture, name: &str, node: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": {annotation::RUN_SECONDS: LONG.to_string()}},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "nodeSelector": {HOST: node},
            "tolerations": [{"key": OWN, "value": fixture.namespace(), "effect": "NoSchedule"}],
            "containers": [{
                "name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}},
            }],
        },
    })
}

/// Whether a pod runs, on the node that its selector names, without the gate.
pub(crate) fn runs(pod: &Pod) -> bool {
    objects::phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none() && !is_gated(pod)
}

pub(crate) fn is_gated(pod: &Pod) -> bool {
    let gates = pod.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten());
    gates.into_iter().any(|gate| gate.name == GATE)
}

pub(crate) fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

/// The node that the selector of a pod names.
pub(crate) fn selected_node(pod: &Pod) -> String {
    let selector = pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    selector.and_then(|selector| selector.get(HOST)).cloned().unwrap_or_default()
}

fn index(pod: &Pod) -> u32 {
    let label = pod.labels().get("batch.kubernetes.io/job-completion-index");
    label.and_then(|text| text.parse().ok()).unwrap_or_default()
}
