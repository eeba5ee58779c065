//! Pods run on the nodes that the agent of their worker counted them on (docs/reference/dispatch.md §4).

use anyhow::{Context, Result, ensure};
use crds::{v1alpha1::ClusterCapacity, v1beta2::Workload};
use e2e::installation::TIMEOUT;
use harness::NodeSpec;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, Pod, PodSpec},
};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, delete, said},
    objects,
};

const HOST: &str = "kubernetes.io/hostname";

impl DispatchFixture {
    /// A small node beside a large one on worker 1, and a queue of both. The manager knows them.
    async fn unequal_nodes(&self, large: &str, small: &str) -> Result<[String; 2]> {
        self.nodes(1, 1, large).await?;
        self.queue("6").await?;
        let namespace = self.namespace();
        let own = objects::own_nodes(namespace, 1, small);
        let small = NodeSpec { prefix: format!("{namespace}-small"), ..own };
        self.worker(1).add_nodes(&small).await?;
        let copies = self.hub().cluster_api::<ClusterCapacity>();
        let has_both = |copy: &ClusterCapacity| {
            let own = objects::own_classes(copy, namespace);
            own.map(|class| class.count).sum::<i32>() == 2
        };
        self.hub().until(&copies, "worker-1", "has both nodes", TIMEOUT, has_both).await?;
        Ok([format!("{namespace}-1"), format!("{namespace}-small-1")])
    }

    /// The specs of the pods of a Job on worker 1.
    async fn pods_of(&self, job: &str) -> Result<Vec<PodSpec>> {
        let labels = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
        let pods = self.worker(1).api::<Pod>(self.namespace()).list(&labels).await?;
        Ok(pods.items.into_iter().filter_map(|pod| pod.spec).collect())
    }
}

/// The scheduler of Kubernetes prefers the node that is left with the most room, where the agent counts the next pod.
#[tokio::test]
async fn a_pod_leaves_the_room_that_was_counted_for_the_next_one() -> Result<()> {
    let fixture = DispatchFixture::shared("assigned").await?;
    let [large, small] = fixture.unequal_nodes("4", "2").await?;
    for (name, cpu) in [("first", "2"), ("second", "3")] {
        fixture.submit(&objects::job(name, 1, cpu, 3600)).await?;
        fixture.until_running(name, 1, 1).await?;
    }
    for (name, node) in [("first", &small), ("second", &large)] {
        let pods = fixture.pods_of(name).await?;
        let pod = pods.first().context("a pod")?;
        ensure!(pod.node_name.as_ref() == Some(node), "{name}: {pod:?}");
        let selected = pod.node_selector.as_ref().and_then(|all| all.get(HOST));
        ensure!(selected == Some(node), "{name}: {pod:?}");
        let job = fixture.api::<Job>().get(name).await?;
        let job = serde_json::to_value(job.spec)?;
        ensure!(job["template"]["spec"]["nodeSelector"].get(HOST).is_none(), "{job}");
    }
    for name in ["first", "second"] {
        delete(&fixture.api::<Job>(), name).await?;
    }
    fixture.until_nothing_is_left().await
}

#[tokio::test]
async fn the_pods_of_a_gang_run_on_its_nodes_beside_what_they_ask_for() -> Result<()> {
    let fixture = DispatchFixture::shared("assigned_gang").await?;
    fixture.nodes(1, 3, "2").await?;
    fixture.queue("6").await?;
    let mut gang = objects::job("gang", 2, "2", 5);
    let linux = json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]});
    gang["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [linux]}],
        },
    }});
    fixture.submit(&gang).await?;
    fixture.until_running("gang", 2, 1).await?;
    let pods = fixture.pods_of("gang").await?;
    ensure!(pods.len() == 2, "{pods:?}");
    for pod in pods {
        let affinity = serde_json::to_value(&pod.affinity)?;
        let required = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = &required["nodeSelectorTerms"];
        let asked = &terms[0]["matchExpressions"];
        ensure!(asked[0] == linux && asked[1]["key"] == HOST, "{terms}");
        let hosts = asked[1]["values"].as_array().context("hosts")?;
        ensure!(hosts.len() == 2 && hosts.contains(&json!(pod.node_name)), "{hosts:?}");
    }
    fixture.expect_once("gang", 2).await
}

/// The template of a Job that runs cannot be changed, so it starts elsewhere.
#[tokio::test]
async fn a_pod_whose_node_takes_no_more_pods_does_not_wait_for_ever() -> Result<()> {
    let fixture = DispatchFixture::shared("assigned_cordoned").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&objects::job("train", 1, "2", 3600)).await?;
    fixture.until_running("train", 1, 1).await?;
    let worker = fixture.worker(1);
    let cordoned = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    let node = format!("{}-1", fixture.namespace());
    let nodes = worker.cluster_api::<Node>();
    nodes.patch(&node, &PatchParams::default(), &cordoned).await?;
    fixture.nodes(2, 1, "2").await?;
    let pods = worker.api::<Pod>(fixture.namespace());
    for pod in pods.list(&ListParams::default()).await?.items {
        delete(&pods, pod.metadata.name.as_deref().context("a name")?).await?;
    }
    let stranded = |all: &[Workload]| {
        let mut evicted = all.iter().filter_map(|one| said(&one.status.conditions, "Evicted"));
        evicted.any(|said| said.reason == "Unschedulable")
    };
    let clones = worker.api::<Workload>(fixture.namespace());
    worker.until_all(&clones, "", "the clone is evicted", 2 * TIMEOUT, stranded).await?;
    fixture.until_running("train", 1, 2).await?;
    delete(&fixture.api::<Job>(), "train").await?;
    fixture.until_nothing_is_left().await
}
