//! A queue without workers runs its Jobs on the manager's own cluster.

use anyhow::Result;
use crds::v1beta2::{ClusterQueue, ResourceFlavor};
use e2e::world::SOON;
use harness::Verdict;
use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;

use crate::{house::House, place};

#[tokio::test]
async fn a_job_waits_for_quota_runs_and_is_finished() -> Result<()> {
    let world = House::shared().await?.world().await?;
    let space = world.lab.space("own_cluster").await?;
    let namespace = space.namespace();
    place::queue(&world.hub, namespace, "2", &[]).await?;
    world.hub.add_nodes(&place::nodes("own", 1, "4")).await?;
    for name in ["first", "second"] {
        world.hub.apply(&place::job(name, 2, "1", 1).to_string(), namespace).await?;
    }
    let jobs = world.hub.api::<Job>(namespace);
    for name in ["first", "second"] {
        world
            .hub
            .until(&jobs, name, "is complete", SOON, |job| {
                let status = job.status.clone().unwrap_or_default();
                status.succeeded == Some(2)
            })
            .await?;
        let judgement = space.observer().judge(name, 2, SOON).await?;
        assert_eq!(judgement.verdict, Verdict::Once, "{judgement}");
    }
    // Nobody uses them any more.
    let (queues, flavors) = (world.hub.cluster_api::<ClusterQueue>(), world.hub.cluster_api());
    queues.delete(namespace, &DeleteParams::default()).await?;
    world.hub.until_gone(&queues, namespace, SOON).await?;
    flavors.delete(namespace, &DeleteParams::default()).await?;
    world.hub.until_gone::<ResourceFlavor>(&flavors, namespace, SOON).await?;
    Ok(())
}
