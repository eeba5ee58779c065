//! A Workload that no worker can hold stays pending without affecting others (docs/reference/dispatch.md §1, §2).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::ClusterQueue;
use e2e::installation::TIMEOUT;

use crate::{
    fixture::{DispatchFixture, said},
    objects,
};

#[tokio::test]
async fn four_nodes_with_two_free_each_take_no_pod_of_four_and_the_jobs_behind_it_run() -> Result<()>
{
    let fixture = DispatchFixture::shared("no_room").await?;
    fixture.nodes(1, 4, "2").await?;
    fixture.queue("8").await?;
    fixture.until_reported(2).await?;
    // A Job on the worker shows that the manager has its capacity report.
    fixture.submit(&objects::job("small", 1, "1", 1)).await?;
    fixture.expect_once("small", 1).await?;

    fixture.submit(&objects::job("large", 1, "4", 1)).await?;
    let waits = fixture
        .until_workload("large", "says why it waits", |one| {
            said(&one.status.conditions, "QuotaReserved").is_some_and(|said| {
                !said.status
                    && said.reason == "WaitingForQuota"
                    && said.message.contains("the most free on a node is 2")
            })
        })
        .await?;
    let why = said(&waits.status.conditions, "QuotaReserved").context("a reason")?;
    let east =
        "worker-1: never fits: pod set main: one pod needs 4 cpu, the most free on a node is 2";
    let west = "worker-2: never fits: pod set main: no node has suitable labels and taints";
    ensure!(why.message == format!("no cluster has room: {east}; {west}"), "{why:?}");
    ensure!(waits.status.admission.is_none(), "it holds quota");

    // Together they need all the quota there is.
    for name in ["first", "second"] {
        fixture.submit(&objects::job(name, 2, "2", 1)).await?;
    }
    for name in ["first", "second"] {
        fixture.expect_once(name, 2).await?;
    }
    let queues = fixture.hub().cluster_api::<ClusterQueue>();
    let idle = |queue: &ClusterQueue| {
        queue.status.reserving_workloads == 0 && queue.status.pending_workloads == 1
    };
    fixture.hub().until(&queues, fixture.namespace(), "has one that waits", TIMEOUT, idle).await?;
    Ok(())
}
