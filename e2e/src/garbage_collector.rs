//! Kubernetes' garbage collector.

use anyhow::Result;
use crds::v1beta2::LocalQueue;
use harness::{Cluster, secs};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

/// Waits until the garbage collector knows Kueue's kinds. It looks for new kinds every 30 seconds. Until then an orphaning deletion
/// leaves the owner references of Workloads as they are, and the Workloads of deleted jobs stay.
///
/// # Errors
/// If it does not know them after 90 seconds.
pub async fn until_it_knows_queues(hub: &Cluster, namespace: &str) -> Result<()> {
    let (owners, name) = (hub.api::<ConfigMap>(namespace), "collected");
    let owner = json!({"metadata": {"name": name}});
    let owner = owners.create(&PostParams::default(), &serde_json::from_value(owner)?).await?;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner.metadata.uid,
    });
    let queue = json!({
        "metadata": {"name": name, "ownerReferences": [reference]},
        "spec": {"clusterQueue": "ample"},
    });
    let queues = hub.api::<LocalQueue>(namespace);
    queues.create(&PostParams::default(), &serde_json::from_value(queue)?).await?;
    owners.delete(name, &DeleteParams::background()).await?;
    Ok(hub.until_gone(&queues, name, secs(90)).await?)
}
