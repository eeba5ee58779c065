//! Start and exit of the process.

use anyhow::Result;
use harness::Launch;
use serde_json::json;

use crate::{TIMEOUT, world};

#[tokio::test]
async fn the_process_exits_cleanly_on_sigterm() -> Result<()> {
    let world = world().await?;
    let replica = world.another(json!({})).await?;
    let status = replica.process.terminate(TIMEOUT).await?;
    assert_eq!(status, "exit status: 0", "{}", replica.process.log_tail(20));
    Ok(())
}

#[tokio::test]
async fn components_without_their_dependencies_are_an_error() -> Result<()> {
    let world = world().await?;
    let process =
        Launch::of("sluice-manager").arg("--components=webhooks,scheduler").start(world.lab)?;
    assert_eq!(process.ended().await, "exit status: 1");
    let log = process.log_tail(60);
    assert!(
        log.contains(
            "core, jobs run together, and scheduler, multikueue with them: core, jobs missing"
        ),
        "{log}"
    );
    Ok(())
}

#[tokio::test]
async fn a_mistyped_dispatcher_is_refused_at_the_start() -> Result<()> {
    let world = world().await?;
    let config = world.lab.state().directory.join("mistyped.yaml");
    let file = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n\
                multiKueue: {dispatcherName: sluice.dev/capacty}\n";
    std::fs::write(&config, file)?;
    let process = Launch::of("sluice-manager")
        .arg("--config")
        .arg(&config)
        .arg("--kubeconfig")
        .arg(world.cluster.state().kubeconfig())
        .start(world.lab)?;
    assert_eq!(process.ended().await, "exit status: 1");
    let log = process.log_tail(60);
    assert!(log.contains("sluice.dev/capacty"), "{log}");
    assert!(log.contains("the dispatchers are [\"sluice.dev/capacity\""), "{log}");
    Ok(())
}
