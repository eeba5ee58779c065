//! What no worker can hold waits without taking anything from others (docs/reference/dispatch.md §1, §2).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::ClusterQueue;
use e2e::world::SOON;

use crate::{
    place,
    site::{Site, said},
};

#[tokio::test]
async fn four_nodes_with_two_free_each_take_no_pod_of_four_and_the_jobs_behind_it_run() -> Result<()>
{
    let site = Site::shared("no_room").await?;
    site.nodes(1, 4, "2").await?;
    site.queue("8").await?;
    site.until_reported(2).await?;
    // Whoever runs one Job there knows the nodes.
    site.submit(&place::job("small", 1, "1", 1)).await?;
    site.expect_once("small", 1).await?;

    site.submit(&place::job("large", 1, "4", 1)).await?;
    let waits = site
        .until_workload("large", "says why it waits", |one| {
            said(&one.status.conditions, "QuotaReserved").is_some_and(|said| {
                !said.status
                    && said.reason == "WaitingForQuota"
                    && said.message.contains("the most free on a node is 2")
            })
        })
        .await?;
    let why = said(&waits.status.conditions, "QuotaReserved").context("a reason")?;
    let east = "worker-1: pod set main: one pod needs 4 cpu, the most free on a node is 2";
    let west = "worker-2: pod set main: no node has suitable labels and taints";
    ensure!(why.message == format!("no cluster has room: {east}; {west}"), "{why:?}");
    ensure!(waits.status.admission.is_none(), "it holds quota");

    // Together they need all the quota there is.
    for name in ["first", "second"] {
        site.submit(&place::job(name, 2, "2", 1)).await?;
    }
    for name in ["first", "second"] {
        site.expect_once(name, 2).await?;
    }
    let queues = site.hub().cluster_api::<ClusterQueue>();
    let idle = |queue: &ClusterQueue| {
        queue.status.reserving_workloads == 0 && queue.status.pending_workloads == 1
    };
    site.hub().until(&queues, site.namespace(), "has one that waits", SOON, idle).await?;
    Ok(())
}
