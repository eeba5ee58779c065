//! PodsReady timeouts, and maximum execution times (docs/reference/kueue.md §2.4, §7.6).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, holds, said, with_label},
    objects,
};

fn is(workload: &Workload, kind: &str, status: bool, reason: &str) -> bool {
    said(&workload.status.conditions, kind)
        .is_some_and(|said| said.status == status && said.reason == reason)
}

#[tokio::test]
async fn a_dispatched_workload_reports_pods_ready() -> Result<()> {
    let fixture = DispatchFixture::shared("pods_ready").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&objects::job("train", 2, "1", objects::LONG)).await?;
    let started = |one: &Workload| is(one, "PodsReady", true, "Started");
    fixture.until_workload("train", "has ready pods", started).await?;
    fixture.expect_once_when_ended("train", 2).await
}

#[tokio::test]
async fn a_dispatched_job_beyond_its_maximum_execution_time_is_deactivated() -> Result<()> {
    let fixture = DispatchFixture::shared("too_long").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    let job = objects::job("train", 2, "1", 3600);
    fixture.submit(&with_label(job, "kueue.x-k8s.io/max-exec-time-seconds", "4")).await?;
    // Its time counts from the admission. A busy machine may show its pods only when they are over.
    let reason = "DeactivatedDueToMaximumExecutionTimeExceeded";
    let released =
        |one: &Workload| is(one, "Evicted", true, reason) && !holds(one, "QuotaReserved");
    let workload = fixture.until_workload("train", "is switched off", released).await?;
    ensure!(workload.spec.active == Some(false), "{:?}", workload.spec);
    fixture.until_nothing_is_left().await
}

/// On the manager's own cluster, where no node can hold them.
#[tokio::test]
async fn a_job_without_ready_pods_is_requeued_and_then_deactivated() -> Result<()> {
    let fixture = DispatchFixture::alone("pods_never_ready").await?;
    objects::own_queue(fixture.hub(), fixture.namespace(), "2", &[]).await?;
    let mut manager = fixture.shared.manager.lock().await;
    manager.take().context("a manager")?.process.terminate(TIMEOUT).await?;
    let hasty = json!({"waitForPodsReady": {
        "timeout": "2s",
        "requeuingStrategy": {"backoffBaseSeconds": 1, "backoffLimitCount": 1},
    }});
    let other = fixture.installation.first_manager_with(&hasty).await?;
    let outcome = never_come(&fixture).await;
    other.process.terminate(TIMEOUT).await?;
    *manager = Some(fixture.installation.first_manager().await?);
    outcome
}

async fn never_come(fixture: &DispatchFixture) -> Result<()> {
    let job = objects::job("train", 2, "1", 1);
    fixture.hub().apply(&job.to_string(), fixture.namespace()).await?;
    let late = |one: &Workload| is(one, "Evicted", true, "PodsReadyTimeout");
    fixture.until_workload("train", "is evicted", late).await?;
    let reason = "DeactivatedDueToRequeuingLimitExceeded";
    let off = |one: &Workload| is(one, "Evicted", true, reason) && !holds(one, "QuotaReserved");
    let workload = fixture.until_workload("train", "is switched off", off).await?;
    ensure!(workload.spec.active == Some(false), "{:?}", workload.spec);
    let evictions = &workload.status.scheduling_stats.context("counts")?.evictions;
    let recorded: Vec<_> = evictions
        .iter()
        .map(|one| (one.reason.as_str(), one.underlying_cause.as_str(), one.count))
        .collect();
    let expected =
        [("PodsReadyTimeout", "WaitForStart", 1), ("Deactivated", "RequeuingLimitExceeded", 1)];
    ensure!(recorded == expected, "{recorded:?}");
    Ok(())
}
