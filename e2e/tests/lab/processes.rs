//! Programs beside the lab: readiness, logs, exit.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use harness::{Launch, secs};

use crate::{TIMEOUT, lab};

#[tokio::test]
async fn a_program_that_exits_before_it_is_ready_is_reported_with_its_log() -> Result<()> {
    let program = Launch::of("sluice-lab").arg("status").start(lab().await?)?;
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let failed = program.ready(nowhere, "/readyz", TIMEOUT).await;
    let message = failed.err().context("it never serves")?.to_string();
    assert!(message.contains("sluice-lab ended (exit status: 0)"), "{message}");
    assert!(message.contains("kube-apiserver"), "its log is shown: {message}");
    Ok(())
}

#[tokio::test]
async fn a_program_is_ready_by_its_url_and_stops_on_a_signal_unless_paused() -> Result<()> {
    let lab = lab().await?;
    let port = harness::free_port()?;
    // kubectl's proxy passes the API server's own readiness on.
    let proxy = Launch::of("sluice-lab")
        .arg("kubectl")
        .arg("--lab")
        .arg(&lab.state().name)
        .args(["worker-1", "proxy"])
        .arg(format!("--port={port}"))
        .start(lab)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    proxy.ready(address, "/readyz", TIMEOUT).await?;
    assert!(proxy.log_tail(1).contains("Starting to serve"), "{}", proxy.log_tail(9));

    proxy.pause()?;
    let refused = proxy.terminate(secs(1)).await;
    let message = refused.err().context("a paused process does nothing it is asked")?.to_string();
    assert!(message.contains("did not end within 1s"), "{message}");
    proxy.resume()?;
    assert_eq!(proxy.ended().await, "signal: 15 (SIGTERM)");
    Ok(())
}
