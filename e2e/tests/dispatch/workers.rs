//! A MultiKueue queue dispatches its Jobs to the worker with free capacity.

use anyhow::Result;
use crds::{meta::is_true, v1alpha1::ClusterCapacity, v1beta2::Workload};
use e2e::{installation::TIMEOUT, waits};
use harness::RunVerdict;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;

use crate::{objects, shared_installation::SharedInstallation};

#[tokio::test]
async fn a_job_runs_once_on_a_worker_with_free_capacity_and_leaves_no_objects() -> Result<()> {
    let installation = SharedInstallation::shared().await?.installation().await?;
    let space = installation.lab.space("on_a_worker").await?;
    let namespace = space.namespace();
    installation.workers[0].add_nodes(&objects::nodes("room", 1, "4")).await?;
    objects::queue(&installation.hub, namespace, "8", &["worker-1", "worker-2"]).await?;
    installation.hub.apply(&objects::job("train", 2, "1", 1).to_string(), namespace).await?;

    let jobs = installation.hub.api::<Job>(namespace);
    let complete = |job: &Job| objects::job_is(job, "Complete");
    let job = installation.hub.until(&jobs, "train", "is complete", TIMEOUT, complete).await?;
    assert_eq!(job.status.and_then(|status| status.succeeded), Some(2));
    let workloads = installation.hub.api::<Workload>(namespace);
    let finished = |all: &[Workload]| {
        all.iter().all(|one| is_true(&one.status.conditions, "Finished")) && !all.is_empty()
    };
    let all = installation.hub.until_all(&workloads, "", "are finished", TIMEOUT, finished).await?;
    assert_eq!(all[0].status.cluster_name.as_deref(), Some("worker-1"));
    for worker in &installation.workers {
        waits::until_no_job_is_left(worker, namespace, TIMEOUT).await?;
    }
    waits::ensure_verdict(space.observer(), ("train", 2), &[RunVerdict::Once]).await.map(drop)
}

#[tokio::test]
async fn the_manager_shows_the_capacity_reports_of_workers() -> Result<()> {
    let installation = SharedInstallation::shared().await?.installation().await?;
    let space = installation.lab.space("shown").await?;
    installation.workers[1].add_nodes(&objects::own_nodes(space.namespace(), 1, "4")).await?;
    let reports: Api<ClusterCapacity> = Api::all(installation.hub.client());
    let nodes = |report: &ClusterCapacity| {
        report.status.node_classes.iter().map(|class| class.count).sum::<i32>() > 0
    };
    let report =
        installation.hub.until(&reports, "worker-2", "shows its nodes", TIMEOUT, nodes).await?;
    let owners = report.metadata.owner_references.unwrap_or_default();
    let owners: Vec<(&str, &str)> =
        owners.iter().map(|one| (one.kind.as_str(), one.name.as_str())).collect();
    assert_eq!(owners, [("MultiKueueCluster", "worker-2")]);
    Ok(())
}
