//! A Job on nodes of a topology, one of which fails before a pod is bound to it.

use anyhow::Result;
use crds::{
    names::annotations::POD_SET_REQUIRED_TOPOLOGY,
    v1beta2::{ClusterQueue, LocalQueue, ResourceFlavor, Topology, Workload},
};
use e2e::{installation::TIMEOUT, objects};
use harness::NodeSpec;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::ResourceExt;
use serde_json::json;

use crate::{
    observed_job::{ObservedJob, create},
    setup::cluster_queue,
};

const RACK: &str = "crash.example/rack";
const HOST: &str = "kubernetes.io/hostname";

/// A gate of the test: the pods are not bound before the node has failed.
const HELD: &str = "crash.example/held";

/// The taint of the nodes.
const OWN: &str = "crash.example/own";

impl ObservedJob<'_> {
    /// A rack of three nodes with room for a pod each. The first one fails.
    pub(super) async fn failing_node(&self) -> Result<()> {
        if !self.again {
            self.rack().await?;
        }
        self.queues().await?;
        let mut job = self.job();
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(self.name);
        let template = &mut job["spec"]["template"];
        template["metadata"]["annotations"][POD_SET_REQUIRED_TOPOLOGY] = json!(RACK);
        template["spec"]["schedulingGates"] = json!([{"name": HELD}]);
        self.submit(job).await?;
        let labels = format!("batch.kubernetes.io/job-name={}", self.name);
        let placed = |pods: &[Pod]| pods.iter().filter(|pod| !node(pod).is_empty()).count() >= 2;
        let pods = self.api::<Pod>();
        self.hub().until_all(&pods, &labels, "pods have a node", TIMEOUT, placed).await?;
        let failed = format!("{}-1", self.name);
        self.break_node(&failed).await?;
        let moved = |pods: &[Pod]| {
            let left: Vec<&Pod> = pods.iter().filter(|pod| !is_over(pod)).collect();
            left.len() == 2 && left.iter().all(|pod| !node(pod).is_empty() && node(pod) != failed)
        };
        let all = self.hub().until_all(&pods, &labels, "pods have moved", TIMEOUT, moved).await?;
        let settled = |one: &Workload| one.status.unhealthy_nodes.is_empty();
        self.until_workload("names no failed node", settled).await?;
        for pod in all.iter().filter(|pod| !is_over(pod)) {
            let open = json!({"spec": {"schedulingGates": null}});
            self.change(&pods, &pod.name_any(), open).await?;
        }
        self.until_over().await
    }

    async fn rack(&self) -> Result<()> {
        let label = |key: &str| (key.to_owned(), self.name.to_owned());
        let nodes = NodeSpec {
            prefix: self.name.to_owned(),
            count: 3,
            cpu: "1".to_owned(),
            labels: [label(RACK)].into(),
            taints: vec![taint(OWN, "NoSchedule")],
            ..NodeSpec::default()
        };
        Ok(self.hub().add_nodes(&nodes).await?)
    }

    async fn queues(&self) -> Result<()> {
        let topology = json!({
            "metadata": {"name": "racks"}, "spec": {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]},
        });
        let topologies = self.hub().cluster_api::<Topology>();
        create(&topologies, &serde_json::from_value(topology)?).await?;
        let flavor = json!({"metadata": {"name": self.name}, "spec": {
            "nodeLabels": {RACK: self.name}, "topologyName": "racks",
            "tolerations": [{"key": OWN, "operator": "Exists"}],
        }});
        let flavors = self.hub().cluster_api::<ResourceFlavor>();
        create(&flavors, &serde_json::from_value(flavor)?).await?;
        let queues = self.hub().cluster_api::<ClusterQueue>();
        let queue = cluster_queue(self.name, self.name, None);
        create(&queues, &serde_json::from_value(queue)?).await?;
        let local = json!({"metadata": {"name": self.name}, "spec": {"clusterQueue": self.name}});
        create(&self.api::<LocalQueue>(), &serde_json::from_value(local)?).await
    }

    /// Puts a taint on a node that no pod tolerates.
    async fn break_node(&self, name: &str) -> Result<()> {
        let taints = [taint(OWN, "NoSchedule"), taint("crash.example/broken", "NoSchedule")];
        let nodes = self.hub().cluster_api::<Node>();
        self.change(&nodes, name, json!({"spec": {"taints": taints}})).await
    }
}

fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), ..Taint::default() }
}

/// The node that the selector of a pod names.
fn node(pod: &Pod) -> &str {
    let selector = pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    selector.and_then(|all| all.get(HOST)).map(String::as_str).unwrap_or_default()
}

fn is_over(pod: &Pod) -> bool {
    matches!(objects::phase(pod), "Succeeded" | "Failed")
}
