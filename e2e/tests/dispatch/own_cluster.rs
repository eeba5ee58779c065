//! A queue without MultiKueue runs its Jobs on the manager's own cluster.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::{ClusterQueue, ResourceFlavor};
use e2e::{installation::TIMEOUT, waits};
use harness::RunVerdict;
use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;

use crate::{objects, shared_installation::SharedInstallation};

#[tokio::test]
async fn a_job_waits_for_quota_runs_and_finishes() -> Result<()> {
    let installation = SharedInstallation::shared().await?.installation().await?;
    let space = installation.lab.space("own_cluster").await?;
    let namespace = space.namespace();
    objects::queue(&installation.hub, namespace, "2", &[]).await?;
    installation.hub.add_nodes(&objects::nodes("own", 1, "4")).await?;
    for name in ["first", "second"] {
        installation.hub.apply(&objects::job(name, 2, "1", 1).to_string(), namespace).await?;
    }
    let jobs = installation.hub.api::<Job>(namespace);
    for name in ["first", "second"] {
        installation
            .hub
            .until(&jobs, name, "is complete", TIMEOUT, |job| {
                let status = job.status.clone().unwrap_or_default();
                status.succeeded == Some(2)
            })
            .await?;
        waits::ensure_verdict(space.observer(), (name, 2), &[RunVerdict::Once]).await?;
    }
    expect_counted(namespace).await?;
    // Nothing uses them any more.
    let (queues, flavors) =
        (installation.hub.cluster_api::<ClusterQueue>(), installation.hub.cluster_api());
    queues.delete(namespace, &DeleteParams::default()).await?;
    installation.hub.until_gone(&queues, namespace, TIMEOUT).await?;
    flavors.delete(namespace, &DeleteParams::default()).await?;
    installation.hub.until_gone::<ResourceFlavor>(&flavors, namespace, TIMEOUT).await?;
    Ok(())
}

/// The metrics of the manager count both Workloads of the queue.
async fn expect_counted(queue: &str) -> Result<()> {
    let manager = SharedInstallation::shared().await?.manager.lock().await;
    let text = manager.as_ref().context("a manager")?.scrape().await?;
    for family in ["quota_reserved_workloads_total", "admitted_workloads_total"] {
        let count = format!(
            "kueue_{family}{{cluster_queue=\"{queue}\",priority_class=\"\",replica_role=\"leader\"}} 2"
        );
        ensure!(text.lines().any(|line| line.starts_with(&count)), "no line {count} in:\n{text}");
    }
    Ok(())
}
