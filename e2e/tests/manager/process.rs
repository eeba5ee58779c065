//! How the process begins and ends.

use anyhow::Result;
use harness::Launch;
use serde_json::json;

use crate::{SOON, world};

#[tokio::test]
async fn it_ends_well_when_it_is_told_to() -> Result<()> {
    let world = world().await?;
    let replica = world.another(json!({})).await?;
    let status = replica.process.terminate(SOON).await?;
    assert_eq!(status, "exit status: 0", "{}", replica.process.log_tail(20));
    Ok(())
}

#[tokio::test]
async fn a_component_that_does_not_exist_is_an_error() -> Result<()> {
    let world = world().await?;
    let process =
        Launch::of("sluice-manager").arg("--components=webhooks,scheduler").start(world.lab)?;
    assert_eq!(process.ended().await, "exit status: 1");
    let log = process.log_tail(60);
    assert!(log.contains("this version has no component scheduler"), "{log}");
    Ok(())
}
