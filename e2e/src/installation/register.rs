//! Registers a worker: a Secret with a kubeconfig of its service account, and a MultiKueueCluster.

use anyhow::{Context, Result};
use harness::{Cluster, FaultProxy, kubeconfig};
use serde_json::json;

use super::NAMESPACE;

/// Registers `worker` under its name, with the address of a proxy if there is one.
pub(super) async fn worker(
    hub: &Cluster,
    worker: &Cluster,
    proxy: Option<&FaultProxy>,
) -> Result<()> {
    let kubeconfig = worker.kubeconfig_for(NAMESPACE, "sluice-hub").await?;
    let kubeconfig = match proxy {
        Some(proxy) => kubeconfig::at_server(kubeconfig, &format!("https://{}", proxy.address())),
        None => kubeconfig,
    };
    let kubeconfig = serde_json::to_string(&kubeconfig).context("the kubeconfig as JSON")?;
    let name = worker.name();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {"kubeconfig": kubeconfig},
    });
    let cluster = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": name},
        "spec": {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": name}}},
    });
    hub.apply(&format!("{secret}\n---\n{cluster}\n"), NAMESPACE).await?;
    Ok(())
}
