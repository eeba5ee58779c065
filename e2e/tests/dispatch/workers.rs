//! A queue with workers gives its Jobs to the one that has room.

use anyhow::Result;
use crds::{meta::is_true, v1alpha1::ClusterCapacity, v1beta2::Workload};
use e2e::world::SOON;
use harness::Verdict;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;

use crate::{house::House, place};

#[tokio::test]
async fn a_job_runs_once_on_a_worker_with_room_and_nothing_is_left_there() -> Result<()> {
    let world = House::shared().await?.world().await?;
    let space = world.lab.space("on_a_worker").await?;
    let namespace = space.namespace();
    world.workers[0].add_nodes(&place::nodes("room", 1, "4")).await?;
    place::queue(&world.hub, namespace, "8", &["worker-1", "worker-2"]).await?;
    world.hub.apply(&place::job("train", 2, "1", 1).to_string(), namespace).await?;

    let jobs = world.hub.api::<Job>(namespace);
    let complete = |job: &Job| {
        let status = job.status.clone().unwrap_or_default();
        status
            .conditions
            .iter()
            .flatten()
            .any(|one| one.type_ == "Complete" && one.status == "True")
    };
    let job = world.hub.until(&jobs, "train", "is complete", SOON, complete).await?;
    assert_eq!(job.status.and_then(|status| status.succeeded), Some(2));
    let workloads = world.hub.api::<Workload>(namespace);
    let finished = |all: &[Workload]| {
        all.iter().all(|one| is_true(&one.status.conditions, "Finished")) && !all.is_empty()
    };
    let all = world.hub.until_all(&workloads, "", "are finished", SOON, finished).await?;
    assert_eq!(all[0].status.cluster_name.as_deref(), Some("worker-1"));
    for worker in &world.workers {
        let (jobs, clones) = (worker.api::<Job>(namespace), worker.api::<Workload>(namespace));
        worker.until_all(&jobs, "", "no job is left", SOON, <[Job]>::is_empty).await?;
        worker.until_all(&clones, "", "no clone is left", SOON, <[Workload]>::is_empty).await?;
    }
    let judgement = space.observer().judge("train", 2, SOON).await?;
    assert_eq!(judgement.verdict, Verdict::Once, "{judgement}");
    Ok(())
}

#[tokio::test]
async fn the_hub_shows_what_its_workers_report() -> Result<()> {
    let world = House::shared().await?.world().await?;
    let space = world.lab.space("shown").await?;
    world.workers[1].add_nodes(&place::own_nodes(space.namespace(), 1, "4")).await?;
    let reports: Api<ClusterCapacity> = Api::all(world.hub.client());
    let nodes = |report: &ClusterCapacity| {
        report.status.node_classes.iter().map(|class| class.count).sum::<i32>() > 0
    };
    let shown = world.hub.until(&reports, "worker-2", "shows its nodes", SOON, nodes).await?;
    let owners = shown.metadata.owner_references.unwrap_or_default();
    let owners: Vec<(&str, &str)> =
        owners.iter().map(|one| (one.kind.as_str(), one.name.as_str())).collect();
    assert_eq!(owners, [("MultiKueueCluster", "worker-2")]);
    Ok(())
}
