//! Registers a worker: a Secret with a kubeconfig of its service account, and a MultiKueueCluster.

use anyhow::{Context, Result};
use harness::{Cluster, FaultProxy, kubeconfig};
use k8s_openapi::ByteString;
use kube::config::Kubeconfig;
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
    hub.apply(&registration(worker.name(), &kubeconfig)?, NAMESPACE).await?;
    Ok(())
}

/// The Secret with the kubeconfig of a worker, and its MultiKueueCluster.
///
/// # Errors
/// If the kubeconfig cannot be written.
pub fn registration(name: &str, kubeconfig: &Kubeconfig) -> Result<String> {
    let kubeconfig = serde_json::to_string(kubeconfig)
        .with_context(|| format!("writing the kubeconfig of {name}"))?;
    // In `data`, as others write it: `stringData` would overwrite a Secret of another owner without a conflict.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"kubeconfig": ByteString(kubeconfig.into_bytes())},
    });
    let cluster = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": name},
        "spec": {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": name}}},
    });
    Ok(format!("{secret}\n---\n{cluster}\n"))
}
