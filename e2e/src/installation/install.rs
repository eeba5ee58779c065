//! The manifests of an installation, from `config/`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use harness::Cluster;
use jobs::{Kinds, manifests};
use serde_json::Value;

use super::NAMESPACE;
use crate::local_webhooks;

/// The repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Kinds, webhooks and roles of a hub.
pub(super) async fn hub(
    cluster: &Cluster,
    (folder, webhooks): (&str, u16),
    declared: &Kinds,
) -> Result<()> {
    let further = local_webhooks::objects(&manifests::of_declared_on_manager(declared))?;
    apply(cluster, folder, further, webhooks).await
}

/// Kinds and roles of a thin worker.
pub(super) async fn worker(cluster: &Cluster, folder: &str, declared: &Kinds) -> Result<()> {
    let further = local_webhooks::objects(&manifests::of_declared_on_worker(declared))?;
    apply(cluster, folder, further, 0).await
}

/// The kinds that agents operate, on a hub, which has no operator of them.
///
/// # Errors
/// If the API server refuses something.
pub async fn operated_kinds(hub: &Cluster) -> Result<()> {
    for folder in ["crates/ray/manifests", "crates/appwrapper/manifests"] {
        hub.apply_kustomization(&root().join(folder), NAMESPACE).await?;
    }
    Ok(())
}

/// Roles of the API of Ray clusters, on a hub and on a worker.
pub(super) async fn ray_api(hub: &Cluster, workers: &[Cluster]) -> Result<()> {
    apply(hub, "config/ray-api", Vec::new(), 0).await?;
    for worker in workers {
        apply(worker, "config/worker/ray-api", Vec::new(), 0).await?;
    }
    Ok(())
}

async fn apply(cluster: &Cluster, folder: &str, further: Vec<Value>, webhooks: u16) -> Result<()> {
    let folder = root().join(folder).display().to_string();
    let mut objects = local_webhooks::objects(&cluster.kubectl(&["kustomize", &folder]).await?)?;
    for object in further {
        add(&mut objects, object);
    }
    Ok(cluster.apply(&local_webhooks::localised(objects, webhooks), NAMESPACE).await?)
}

/// Adds an object. The patch of a webhook configuration adds its webhooks to those that are there.
fn add(objects: &mut Vec<Value>, object: Value) {
    let same = |one: &&mut Value| {
        one["kind"] == object["kind"] && one["metadata"]["name"] == object["metadata"]["name"]
    };
    let known = objects.iter_mut().find(same);
    match known.and_then(|known| known["webhooks"].as_array_mut()) {
        Some(webhooks) => {
            webhooks.extend(object["webhooks"].as_array().into_iter().flatten().cloned());
        }
        None => objects.push(object),
    }
}
