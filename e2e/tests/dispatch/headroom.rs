//! Work that fits on no present node goes to the worker with an autoscaler that can add some (docs/reference/dispatch.md §2, §4). The
//! autoscaler is played: the test writes its status and adds the nodes.

use anyhow::Result;
use crds::v1alpha1::{ClusterCapacity, LOCAL};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, delete, said},
    objects,
};

/// The label by which nodes belong to the group of their name.
const GROUP_LABEL: &str = "kwok-nodegroup";

pub(crate) const STATUS_CONFIG_MAP: &str = "cluster-autoscaler-status";

/// The status of an autoscaler with one group of the test's nodes.
pub(crate) fn status(group: &str, target: usize, scale_up: &str) -> String {
    let health = json!({
        "status": "Healthy", "cloudProviderTarget": target, "maxSize": 3,
        "nodeCounts": {"registered": {"ready": target}},
    });
    let groups = json!([{"name": group, "health": health, "scaleUp": {"status": scale_up}}]);
    // JSON is YAML.
    let document = json!({"autoscalerStatus": "Running", "nodeGroups": groups});
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": STATUS_CONFIG_MAP},
        "data": {"status": document.to_string()},
    })
    .to_string()
}

/// Adds a node of the group to a worker.
pub(crate) async fn add_node(fixture: &DispatchFixture, number: usize, name: &str) -> Result<()> {
    let mut spec = objects::own_nodes(fixture.namespace(), 1, "2");
    spec.prefix = format!("{}-{name}", spec.prefix);
    spec.labels.insert(GROUP_LABEL.to_owned(), fixture.namespace().to_owned());
    Ok(fixture.worker(number).add_nodes(&spec).await?)
}

async fn until_headroom(fixture: &DispatchFixture, number: usize, nodes: i32) -> Result<()> {
    let worker = fixture.worker(number);
    let reports = worker.cluster_api::<ClusterCapacity>();
    let reported = |report: &ClusterCapacity| {
        report.status.elastic.iter().map(|one| one.max_more).sum::<i32>() == nodes
    };
    let what = format!("reports {nodes} new nodes");
    worker.until(&reports, LOCAL, &what, TIMEOUT, reported).await?;
    Ok(())
}

#[tokio::test]
async fn a_job_that_fits_nowhere_runs_on_new_nodes_of_the_worker_with_an_autoscaler() -> Result<()>
{
    let fixture = DispatchFixture::alone("headroom").await?;
    let group = fixture.namespace().to_owned();
    add_node(&fixture, 1, "first").await?;
    add_node(&fixture, 2, "first").await?;
    fixture.queue("8").await?;
    fixture.until_reported(1).await?;
    fixture.until_reported(2).await?;

    // No present node takes a second pod of two cpus beside the first one.
    fixture.submit(&objects::job("gang", 2, "2", 1)).await?;
    fixture
        .until_workload("gang", "says why it waits", |one| {
            said(&one.status.conditions, "QuotaReserved")
                .is_some_and(|said| said.message.contains(": never fits: "))
        })
        .await?;

    fixture.worker(2).apply(&status(&group, 1, "NoActivity"), "kube-system").await?;
    // The pods of the gang need one node more than there is.
    let labels = "batch.kubernetes.io/job-name=gang";
    let unschedulable = |all: &[Pod]| {
        let conditions =
            all.iter().filter_map(|pod| pod.status.as_ref()?.conditions.as_ref()).flatten();
        conditions.filter(|one| one.reason.as_deref() == Some("Unschedulable")).count() == 1
    };
    let pods = fixture.worker(2).api::<Pod>(fixture.namespace());
    let what = "one waits for a node";
    fixture.worker(2).until_all(&pods, labels, what, TIMEOUT, unschedulable).await?;
    until_headroom(&fixture, 2, 1).await?;

    fixture.worker(2).apply(&status(&group, 2, "InProgress"), "kube-system").await?;
    add_node(&fixture, 2, "second").await?;
    fixture.expect_once("gang", 2).await?;
    until_headroom(&fixture, 2, 1).await?;
    delete(&fixture.worker(2).api::<ConfigMap>("kube-system"), STATUS_CONFIG_MAP).await
}
