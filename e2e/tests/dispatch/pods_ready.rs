//! Pods that are waited for, and work that takes longer than it may (docs/reference/kueue.md §2.4, §7.6).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use e2e::world::SOON;
use serde_json::json;

use crate::{
    house::House,
    place,
    site::{Site, holds, said, with_label},
};

fn is(workload: &Workload, kind: &str, status: bool, reason: &str) -> bool {
    said(&workload.status.conditions, kind)
        .is_some_and(|said| said.status == status && said.reason == reason)
}

#[tokio::test]
async fn a_dispatched_workload_says_that_its_pods_are_ready() -> Result<()> {
    let site = Site::shared("pods_ready").await?;
    site.nodes(1, 1, "2").await?;
    site.queue("2").await?;
    site.submit(&place::job("train", 2, "1", 6)).await?;
    let started = |one: &Workload| is(one, "PodsReady", true, "Started");
    site.until_workload("train", "has ready pods", started).await?;
    site.expect_once("train", 2).await
}

#[tokio::test]
async fn a_dispatched_job_that_takes_longer_than_it_may_is_stopped_for_good() -> Result<()> {
    let site = Site::shared("too_long").await?;
    site.nodes(1, 1, "2").await?;
    site.queue("2").await?;
    let job = place::job("train", 2, "1", 3600);
    site.submit(&with_label(job, "kueue.x-k8s.io/max-exec-time-seconds", "4")).await?;
    site.until_running("train", 2, 1).await?;
    let reason = "DeactivatedDueToMaximumExecutionTimeExceeded";
    let released =
        |one: &Workload| is(one, "Evicted", true, reason) && !holds(one, "QuotaReserved");
    let workload = site.until_workload("train", "is switched off", released).await?;
    ensure!(workload.spec.active == Some(false), "{:?}", workload.spec);
    site.until_nothing_is_left().await
}

/// On the manager's own cluster, where no node can hold them.
#[tokio::test]
async fn a_job_whose_pods_never_come_is_tried_again_and_then_switched_off() -> Result<()> {
    let site = Site::alone("pods_never_ready").await?;
    place::own_queue(site.hub(), site.namespace(), "2", &[]).await?;
    let mut manager = House::alone().await?.manager.lock().await;
    manager.take().context("a manager")?.process.terminate(SOON).await?;
    let hasty = json!({"waitForPodsReady": {
        "timeout": "2s",
        "requeuingStrategy": {"backoffBaseSeconds": 1, "backoffLimitCount": 1},
    }});
    let other = site.world.manager_with(true, &hasty, &[]).await?;
    let outcome = never_come(&site).await;
    other.process.terminate(SOON).await?;
    *manager = Some(site.world.manager(true, &[]).await?);
    outcome
}

async fn never_come(site: &Site) -> Result<()> {
    let job = place::job("train", 2, "1", 1);
    site.hub().apply(&job.to_string(), site.namespace()).await?;
    let late = |one: &Workload| is(one, "Evicted", true, "PodsReadyTimeout");
    site.until_workload("train", "is evicted", late).await?;
    let reason = "DeactivatedDueToRequeuingLimitExceeded";
    let off = |one: &Workload| is(one, "Evicted", true, reason) && !holds(one, "QuotaReserved");
    let workload = site.until_workload("train", "is switched off", off).await?;
    ensure!(workload.spec.active == Some(false), "{:?}", workload.spec);
    let evictions = &workload.status.scheduling_stats.context("counts")?.evictions;
    let told: Vec<_> = evictions
        .iter()
        .map(|one| (one.reason.as_str(), one.underlying_cause.as_str(), one.count))
        .collect();
    let expected =
        [("PodsReadyTimeout", "WaitForStart", 1), ("Deactivated", "RequeuingLimitExceeded", 1)];
    ensure!(told == expected, "{told:?}");
    Ok(())
}
