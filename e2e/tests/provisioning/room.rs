//! The nodes that an autoscaler provides in a topology: the second pass places the pods there.

use anyhow::{Result, ensure};
use crds::{
    names::annotations::POD_SET_REQUIRED_TOPOLOGY,
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{
    installation::TIMEOUT,
    objects::{OWN, own_nodes},
};
use harness::NodeSpec;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::fixture::{ProvisioningFixture, WORKLOAD};

const RACK: &str = "lab.example/rack";
const ZONE: &str = "lab.example/zone";

impl ProvisioningFixture {
    /// Replaces the flavor of the queue by one of a topology of racks.
    async fn use_topology(&self) -> Result<()> {
        let (api, name) = ("kueue.x-k8s.io/v1beta2", self.namespace());
        let flavor = format!("{name}-racks");
        let toleration = json!({"key": OWN, "value": name, "effect": "NoSchedule"});
        let objects = [
            json!({"apiVersion": api, "kind": "Topology", "metadata": {"name": name}, "spec": {
                "levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}],
            }}),
            json!({"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": flavor}, "spec": {
                "nodeLabels": {OWN: name}, "tolerations": [toleration], "topologyName": name,
            }}),
        ];
        let text = objects.map(|one| one.to_string()).join("\n---\n");
        self.hub.apply(&text, name).await?;
        let groups = json!([{"coveredResources": ["cpu"], "flavors": [
            {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": "8"}]},
        ]}]);
        let patch = Patch::Merge(json!({"spec": {"resourceGroups": groups}}));
        let queues = self.hub.cluster_api::<ClusterQueue>();
        queues.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Adds a rack of two nodes with these labels. Returns the prefix of its nodes.
    async fn add_rack(&self, rack: &str, labels: &[(&str, &str)]) -> Result<String> {
        let prefix = format!("{}-{rack}", self.namespace());
        let mut nodes = NodeSpec { prefix: prefix.clone(), ..own_nodes(self.namespace(), 2, "4") };
        let more = labels.iter().copied().chain([(RACK, prefix.as_str())]);
        nodes.labels.extend(more.map(|(key, value)| (key.to_owned(), value.to_owned())));
        self.hub.add_nodes(&nodes).await?;
        Ok(prefix)
    }
}

#[tokio::test]
async fn pods_are_placed_on_the_nodes_that_were_provided() -> Result<()> {
    let selector = json!([{"key": ZONE, "valueFromProvisioningClassDetail": "zone"}]);
    let config = json!({"podSetUpdates": {"nodeSelector": selector}});
    let fixture = ProvisioningFixture::new("placed", &config).await?;
    fixture.use_topology().await?;
    fixture.add_rack("a", &[]).await?;
    let annotations = json!({POD_SET_REQUIRED_TOPOLOGY: RACK});
    let template = json!({"metadata": {"annotations": annotations}});
    fixture.submit(2, json!({"spec": {"template": template}})).await?;
    let request = fixture.until_request(1).await?;
    // The rack without the label comes first by name.
    let provided = fixture.add_rack("b", &[(ZONE, "a")]).await?;
    fixture.answer(&request, ("Provisioned", "True", "")).await?;
    let assigned = |one: &Workload, _: &_| {
        let admission = one.status.admission.as_ref();
        let sets = admission.map_or(&[][..], |one| &one.pod_set_assignments);
        sets.iter().any(|set| set.topology_assignment.is_some())
    };
    fixture.until_workload("has a topology assignment", assigned).await?;
    let runs = |pods: &[Pod]| {
        let on_node = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        pods.iter().filter(on_node).count() == 2
    };
    let labels = format!("batch.kubernetes.io/job-name={WORKLOAD}");
    let pods = fixture.hub.api::<Pod>(fixture.namespace());
    let pods = fixture.hub.until_all(&pods, &labels, "pods have nodes", 2 * TIMEOUT, runs).await?;
    for pod in pods {
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        ensure!(node.starts_with(&provided), "{node}");
    }
    Ok(())
}
