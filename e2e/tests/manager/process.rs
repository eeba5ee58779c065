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
async fn components_that_make_no_sense_alone_are_an_error() -> Result<()> {
    let world = world().await?;
    let process =
        Launch::of("sluice-manager").arg("--components=webhooks,scheduler").start(world.lab)?;
    assert_eq!(process.ended().await, "exit status: 1");
    let log = process.log_tail(60);
    assert!(log.contains("core, jobs, scheduler run together, core, jobs missing"), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_dispatcher_that_does_not_exist_is_refused_at_the_start() -> Result<()> {
    let world = world().await?;
    // Upstream's default, which holds where nothing is said.
    let process = Launch::of("sluice-manager")
        .arg("--kubeconfig")
        .arg(world.cluster.state().kubeconfig())
        .start(world.lab)?;
    assert_eq!(process.ended().await, "exit status: 1");
    let log = process.log_tail(60);
    assert!(log.contains("multikueue-dispatcher-all-at-once"), "{log}");
    assert!(log.contains("this version has \"sluice.dev/capacity\" only"), "{log}");
    Ok(())
}
