//! The manifests of an installation, from `config/`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use harness::Cluster;

use super::NAMESPACE;
use crate::local_webhooks;

/// The repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Kinds, webhooks and roles of a hub.
pub(super) async fn hub(cluster: &Cluster, webhooks: u16) -> Result<()> {
    apply(cluster, "config/default", webhooks).await
}

/// Kinds and roles of a thin worker.
pub(super) async fn worker(cluster: &Cluster) -> Result<()> {
    apply(cluster, "config/worker", 0).await
}

async fn apply(cluster: &Cluster, folder: &str, webhooks: u16) -> Result<()> {
    let folder = root().join(folder).display().to_string();
    let built = cluster.kubectl(&["kustomize", &folder]).await?;
    let text = local_webhooks::localised(&built, webhooks)?;
    Ok(cluster.apply(&text, NAMESPACE).await?)
}
