//! Programs beside the lab: their readiness, their logs, their end.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use harness::{Launch, TestLab, secs};

use crate::{SOON, lab};

/// The tool itself is a program of the workspace that talks and ends, and with `supervise` one that stays.
async fn status(lab: &'static TestLab) -> Result<harness::Process> {
    Ok(Launch::of("sluice-lab").arg("status").start(lab)?)
}

#[tokio::test]
async fn a_program_that_ends_before_it_is_ready_is_told_by_its_last_lines() -> Result<()> {
    let program = status(lab().await?).await?;
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let failed = program.ready(nowhere, "/readyz", SOON).await;
    let message = failed.err().context("it never serves")?.to_string();
    assert!(
        message.contains("sluice-lab ended (exit status: 0)"),
        "{message}"
    );
    assert!(
        message.contains("kube-apiserver"),
        "its log is shown: {message}"
    );
    Ok(())
}

#[tokio::test]
async fn kwok_is_ready_by_url_and_ends_when_asked() -> Result<()> {
    let lab = lab().await?;
    let cluster = lab.cluster("worker-1").await?;
    let kwok = SocketAddr::from((Ipv4Addr::LOCALHOST, cluster.state().kwok_port));
    // Any long-running program will do for the signals; a foreground kubectl is one.
    let proxy = Launch::of("sluice-lab")
        .arg("kubectl")
        .arg("--lab")
        .arg(&lab.state().name)
        .arg("worker-1")
        .arg("proxy")
        .arg("--port=0")
        .start(lab)?;
    proxy.ready(kwok, "/healthz", SOON).await?;
    proxy.pause()?;
    assert!(
        proxy.terminate(secs(1)).await.is_err(),
        "a paused process does not end by being asked"
    );
    proxy.resume()?;
    let status = proxy.ended().await;
    assert!(status.contains("15"), "{status}");
    Ok(())
}
