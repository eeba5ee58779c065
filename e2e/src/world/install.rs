//! What users apply.

use std::path::{Path, PathBuf};

use anyhow::Result;
use harness::Cluster;
use serde_json::json;

use super::NAMESPACE;
use crate::local_webhooks;

/// The repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

async fn namespace(cluster: &Cluster) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    Ok(cluster.apply(&object.to_string(), NAMESPACE).await?)
}

/// Kinds, webhooks and roles of a hub.
pub(super) async fn hub(cluster: &Cluster, webhooks: u16) -> Result<()> {
    namespace(cluster).await?;
    for folder in ["crds/manifests", "config/webhook"] {
        let manifests = local_webhooks::manifests(&root().join(folder), webhooks)?;
        cluster.apply(&manifests, NAMESPACE).await?;
    }
    temporary(cluster).await?;
    Ok(cluster.apply_kustomization(&root().join("config/rbac"), NAMESPACE).await?)
}

/// Kinds and roles of a thin worker.
pub(super) async fn worker(cluster: &Cluster) -> Result<()> {
    namespace(cluster).await?;
    temporary(cluster).await?;
    let manifests = local_webhooks::manifests(&root().join("crds/manifests"), 1)?;
    let manifests: String = manifests
        .split("---\n")
        .filter(|one| one.contains("clustercapacities") || one.contains("workloads.kueue"))
        .map(|one| {
            let mut value: serde_json::Value = serde_json::from_str(one).unwrap_or_default();
            value["spec"].as_object_mut().map(|spec| spec.remove("conversion"));
            format!("---\n{value}\n")
        })
        .collect();
    cluster.apply(&manifests, NAMESPACE).await?;
    Ok(())
}

async fn temporary(cluster: &Cluster) -> Result<()> {
    for name in ["sluice-manager", "sluice-agent", "sluice-hub"] {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}});
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": format!("{name}-admin")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        });
        cluster.apply(&format!("{account}\n---\n{binding}\n"), NAMESPACE).await?;
    }
    Ok(())
}
