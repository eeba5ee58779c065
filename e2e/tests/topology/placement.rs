//! Which nodes the pods of Jobs and groups get.

use anyhow::{Result, ensure};
use crds::names::annotations::{POD_SET_PREFERRED_TOPOLOGY, POD_SET_REQUIRED_TOPOLOGY};
use e2e::installation::TIMEOUT;
use harness::annotation;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::fixture::{BLOCK, LONG, RACK, TopologyFixture, node_of, runs, selected_node};

#[tokio::test]
async fn a_job_with_a_required_topology_runs_in_one_rack_by_rank() -> Result<()> {
    let fixture = TopologyFixture::new("required", 2).await?;
    fixture.submit("train", 4, (POD_SET_REQUIRED_TOPOLOGY, RACK)).await?;
    let pods = fixture.until_running("train", 4).await?;
    let racks = fixture.racks(&pods, RACK).await?;
    ensure!(racks.values().eq(&[4]), "one rack has all pods: {racks:?}");
    let nodes: Vec<String> = pods.iter().map(node_of).collect();
    ensure!(pods.iter().map(selected_node).eq(nodes.iter().cloned()), "{nodes:?}");
    // Neighbours in rank share a node, which has room for two.
    ensure!(nodes[0] == nodes[1] && nodes[1] < nodes[2] && nodes[2] == nodes[3], "{nodes:?}");
    let workload = fixture.until_workload("train", "is admitted", |one| one.admission.is_some());
    let admission = workload.await?.status.admission.unwrap_or_default();
    let assigned = admission.pod_set_assignments[0].topology_assignment.clone().unwrap_or_default();
    let domains: Vec<(Vec<String>, i32)> = assigned.domains().collect();
    ensure!(assigned.levels == ["kubernetes.io/hostname"], "{assigned:?}");
    let expected = [(vec![nodes[0].clone()], 2), (vec![nodes[2].clone()], 2)];
    ensure!(domains == expected, "{domains:?}");
    Ok(())
}

#[tokio::test]
async fn a_job_with_a_preferred_topology_spreads_over_a_block() -> Result<()> {
    let fixture = TopologyFixture::new("preferred", 2).await?;
    // A rack has room for four.
    fixture.submit("train", 6, (POD_SET_PREFERRED_TOPOLOGY, RACK)).await?;
    let pods = fixture.until_running("train", 6).await?;
    let (racks, blocks) = (fixture.racks(&pods, RACK).await?, fixture.racks(&pods, BLOCK).await?);
    ensure!(racks.len() == 2 && blocks.len() == 1, "{racks:?}, {blocks:?}");
    Ok(())
}

#[tokio::test]
async fn a_job_that_no_rack_holds_waits_and_starts_when_one_does() -> Result<()> {
    let fixture = TopologyFixture::new("waits", 1).await?;
    fixture.submit("train", 4, (POD_SET_REQUIRED_TOPOLOGY, RACK)).await?;
    fixture.until_pending("train").await?;
    fixture.add_rack("c1", 2).await?;
    let pods = fixture.until_running("train", 4).await?;
    let racks = fixture.racks(&pods, RACK).await?;
    ensure!(racks.keys().eq([&fixture.rack("c1")]), "{racks:?}");
    Ok(())
}

#[tokio::test]
async fn pods_of_a_group_get_their_domains() -> Result<()> {
    let fixture = TopologyFixture::new("group", 2).await?;
    let api = fixture.pods();
    for number in 0..3 {
        fixture.create_pod(member(&format!("m{number}"))).await?;
    }
    let all = |pods: &[Pod]| pods.iter().filter(|pod| runs(pod)).count() == 3;
    let pods = fixture.hub.until_all(&api, "", "the members run", 2 * TIMEOUT, all).await?;
    let racks = fixture.racks(&pods, RACK).await?;
    ensure!(racks.values().eq(&[3]), "{racks:?}");
    ensure!(pods.iter().all(|pod| node_of(pod) == selected_node(pod)));
    Ok(())
}

/// A member of a group of three pods of 2 cpus.
fn member(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {
                "kueue.x-k8s.io/queue-name": "queue", "kueue.x-k8s.io/pod-group-name": "team",
            },
            "annotations": {
                annotation::RUN_SECONDS: LONG.to_string(),
                "kueue.x-k8s.io/pod-group-total-count": "3",
                POD_SET_REQUIRED_TOPOLOGY: RACK,
            },
        },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": "main", "resources": {"requests": {"cpu": "2"}},
            }],
        },
    })
}
