//! The manager that is measured.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use anyhow::{Context, Result};
use harness::{Launch, free_port};
use serde_json::json;

use super::AgentFleet;
use crate::installation::{NAMESPACE, Program, TIMEOUT};

/// Starts the manager for the hub, with dispatch and without servers that the API server calls.
pub(super) async fn start(
    fleet: &AgentFleet,
    folder: &Path,
    programs: Option<&Path>,
) -> Result<Program> {
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (health, metrics) = (local(free_port()?), local(free_port()?));
    let config = json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": health.to_string()},
        "metrics": {"bindAddress": metrics.to_string()},
        "leaderElection": {"leaderElect": false},
        "integrations": {"frameworks": ["batch/job"]},
        "multiKueue": {"dispatcherName": "sluice.dev/capacity"},
    });
    let kubeconfig = serde_json::to_value(fleet.double.kubeconfig("hub"))?;
    let file = |name: &str, content: String| {
        let path = folder.join(name);
        std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        anyhow::Ok(path)
    };
    let process = Launch::of("sluice-manager")
        .built_in(programs.map(Path::to_owned))
        .args(["--metrics-plain", "--log-level=warn"])
        .arg("--components=core,jobs,scheduler,multikueue")
        .arg("--config")
        .arg(file("manager.yaml", config.to_string())?)
        .arg("--kubeconfig")
        .arg(file("hub.kubeconfig", kubeconfig.to_string())?)
        .start_in(folder)?;
    process.ready(health, "/readyz", TIMEOUT).await?;
    Ok(Program { process, metrics, health })
}
