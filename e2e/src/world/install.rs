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
    Ok(cluster.apply_kustomization(&root().join("config/rbac"), NAMESPACE).await?)
}

/// Kinds and roles of a thin worker.
pub(super) async fn worker(cluster: &Cluster) -> Result<()> {
    namespace(cluster).await?;
    Ok(cluster.apply_kustomization(&root().join("config/worker/thin"), NAMESPACE).await?)
}
