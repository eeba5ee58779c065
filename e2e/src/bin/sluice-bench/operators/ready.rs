//! From the last pod of a dispatched RayCluster that is ready on the worker until the manager's object is ready.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use e2e::installation::TIMEOUT;
use harness::{Cluster, secs};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use tokio::time::timeout;

use super::sample_cluster::{SampleCluster, is_ready, ray_clusters};
use crate::environment::{BenchEnvironment, NAME};
use crate::quantiles::Quantiles;

/// For one RayCluster.
const WITHIN: Duration = secs(60);

/// Workers of each.
const WORKERS: usize = 2;

/// Runs so many RayClusters, one after the other.
pub(super) async fn measure(field: &BenchEnvironment<'_>, clusters: usize) -> Result<Quantiles> {
    let hub = &field.installation.hub;
    let worker = field.worker("worker-1")?;
    let mut took = Vec::new();
    for number in 0..clusters {
        let name = format!("ray-{number}");
        SampleCluster { name: &name, workers: WORKERS, is_queued: true }.create(hub).await?;
        let both = async { tokio::try_join!(pods_ready(worker, &name), status_ready(hub, &name)) };
        let (pods, status) =
            timeout(WITHIN, both).await.with_context(|| format!("{name} was not ready"))??;
        took.push(status.saturating_duration_since(pods));
        let clusters = ray_clusters(hub);
        clusters.delete(&name, &DeleteParams::background()).await.context("deleting it")?;
        hub.until_gone(&clusters, &name, TIMEOUT).await?;
    }
    Ok(Quantiles::of(took))
}

async fn pods_ready(worker: &Cluster, name: &str) -> Result<Instant> {
    let labels = format!("ray.io/cluster={name}");
    let ready = |pods: &[Pod]| pods.len() == WORKERS + 1 && pods.iter().all(is_pod_ready);
    worker.until_all(&worker.api::<Pod>(NAME), &labels, "are ready", WITHIN, ready).await?;
    Ok(Instant::now())
}

async fn status_ready(hub: &Cluster, name: &str) -> Result<Instant> {
    hub.until(&ray_clusters(hub), name, "is ready", WITHIN, is_ready).await?;
    Ok(Instant::now())
}

fn is_pod_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}
