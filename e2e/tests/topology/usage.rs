//! What counts as used: pods of others, and what Workloads have that an earlier process admitted.

use anyhow::{Result, ensure};
use crds::names::annotations::POD_SET_REQUIRED_TOPOLOGY;
use kube::api::DeleteParams;

use crate::fixture::{RACK, TopologyFixture, other_pod};

#[tokio::test]
async fn pods_of_others_take_room_until_they_are_gone() -> Result<()> {
    let fixture = TopologyFixture::new("others", 1).await?;
    let pods = fixture.pods();
    for rack in ["a1", "a2", "b1", "b2"] {
        let node = format!("{}-1", fixture.rack(rack));
        let pod = other_pod(&fixture, &format!("other-{rack}"), &node, "3");
        fixture.create_pod(pod).await?;
    }
    let bound = |all: &[k8s_openapi::api::core::v1::Pod]| {
        all.iter().filter(|pod| !crate::fixture::node_of(pod).is_empty()).count() == 4
    };
    let timeout = e2e::installation::TIMEOUT;
    fixture.hub.until_all(&pods, "", "the others are bound", 2 * timeout, bound).await?;
    // Two pods of two cpus need a node of their own.
    fixture.submit("train", 2, (POD_SET_REQUIRED_TOPOLOGY, RACK)).await?;
    fixture.until_pending("train").await?;
    pods.delete("other-b1", &DeleteParams::default()).await?;
    let running = fixture.until_running("train", 2).await?;
    let racks = fixture.racks(&running, RACK).await?;
    ensure!(racks.keys().eq([&fixture.rack("b1")]), "{racks:?}");
    Ok(())
}

#[tokio::test]
async fn a_manager_that_starts_again_counts_what_runs() -> Result<()> {
    let fixture = TopologyFixture::new("restart", 1).await?;
    // Every rack holds one Job.
    for name in ["one", "two", "three"] {
        fixture.submit(name, 2, (POD_SET_REQUIRED_TOPOLOGY, RACK)).await?;
        fixture.until_running(name, 2).await?;
    }
    fixture.restart_manager().await?;
    fixture.submit("four", 2, (POD_SET_REQUIRED_TOPOLOGY, RACK)).await?;
    let four = fixture.until_running("four", 2).await?;
    let mut racks = fixture.racks(&four, RACK).await?;
    for name in ["one", "two", "three"] {
        let pods = fixture.until_running(name, 2).await?;
        racks.extend(fixture.racks(&pods, RACK).await?);
    }
    ensure!(racks.len() == 4 && racks.values().all(|pods| *pods == 2), "{racks:?}");
    // Jobs that the manager sees at once are admitted in either order, so the fifth comes last.
    fixture.submit("five", 2, (POD_SET_REQUIRED_TOPOLOGY, RACK)).await?;
    fixture.until_pending("five").await?;
    Ok(())
}
