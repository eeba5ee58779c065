//! Pods move from a failed node to another one of their rack.

use anyhow::{Result, ensure};
use crds::{names::annotations::POD_SET_REQUIRED_TOPOLOGY, v1beta2::WorkloadStatus};

use crate::fixture::{RACK, TopologyFixture, node_of};

#[tokio::test]
async fn the_pods_of_a_failed_node_move_to_another_one() -> Result<()> {
    let fixture = TopologyFixture::new("replaced", 3).await?;
    fixture.submit("train", 4, (POD_SET_REQUIRED_TOPOLOGY, RACK)).await?;
    let before = fixture.until_running("train", 4).await?;
    let failed = node_of(&before[0]);
    // Kubernetes deletes the pods on it, and the Job makes others.
    fixture.break_node(&failed).await?;
    let moved = |status: &WorkloadStatus| {
        let nodes = index::status::assigned_nodes(status);
        status.unhealthy_nodes.is_empty() && nodes.len() == 2 && !nodes.contains(&failed)
    };
    fixture.until_workload("train", "has another node", moved).await?;
    let after = fixture.until_running("train", 4).await?;
    let nodes: Vec<String> = after.iter().map(node_of).collect();
    ensure!(!nodes.contains(&failed), "{nodes:?}");
    ensure!(nodes[2..] == [node_of(&before[2]), node_of(&before[3])], "others stay: {nodes:?}");
    let racks = fixture.racks(&after, RACK).await?;
    ensure!(racks == fixture.racks(&before, RACK).await?, "the rack is the same: {racks:?}");
    Ok(())
}

#[tokio::test]
async fn a_workload_without_another_node_is_evicted_and_starts_elsewhere() -> Result<()> {
    let fixture = TopologyFixture::new("evicted", 2).await?;
    fixture.submit("train", 4, (POD_SET_REQUIRED_TOPOLOGY, RACK)).await?;
    let before = fixture.until_running("train", 4).await?;
    let failed = node_of(&before[0]);
    fixture.break_node(&failed).await?;
    let evictions = |status: &WorkloadStatus| {
        let stats = status.scheduling_stats.as_ref();
        stats.is_some_and(|all| all.evictions.iter().any(|one| one.reason == "NodeFailures"))
    };
    fixture.until_workload("train", "is evicted", evictions).await?;
    let after = fixture.until_running("train", 4).await?;
    let racks = fixture.racks(&after, RACK).await?;
    ensure!(racks.len() == 1 && racks != fixture.racks(&before, RACK).await?, "{racks:?}");
    Ok(())
}
