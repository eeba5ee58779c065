//! Jobs that are dispatched to workers.

use anyhow::{Result, ensure};
use e2e::{installation::TIMEOUT, listed_pods::are_listed, objects::LONG, waits::while_pods_end};
use harness::{Follow, FollowedChange, RunVerdict};
use kube::{ResourceExt, api::DynamicObject};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    expect,
    fixture::KindFixture,
    kind_under_test::{JobPlan, KindUnderTest},
};

pub(crate) async fn a_job_runs_on_a_worker_and_leaves_no_objects(
    tested: KindUnderTest,
) -> Result<()> {
    let fixture = KindFixture::new("dispatched", tested).await?;
    fixture.room_on(1, 1).await?;
    fixture.quota_on_workers(1).await?;
    let (hub, tested) = (fixture.hub(), &fixture.tested);
    let mut copies = Follow::new(fixture.jobs(fixture.worker(1)));
    let FollowedChange::Listed(none) = copies.next().await else {
        anyhow::bail!("a list comes first")
    };
    ensure!(none.is_empty(), "{none:?}");

    fixture.submit_for_workers(&JobPlan::of("train", 5)).await?;
    let created = timeout(2 * TIMEOUT, next_copy(&mut copies)).await??;
    ensure!(tested.is_suspended(&created), "a copy is created suspended: {created}");
    let started = fixture.until_started(fixture.worker(1), "train").await?;
    let workload = fixture.until_workload("train", "is there", |_| true).await?;
    expect::is_started(tested, &started, &workload, fixture.namespace())?;
    let active = |job: &Value| tested.is_active(job);
    fixture.until_job(hub, "train", "shows the pods of its copy", active).await?;
    fixture.until_succeeded("train").await?;
    let workload = fixture.until_finished("train").await?;
    ensure!(workload.status.cluster_name.as_deref() == Some("worker-1"), "{:?}", workload.status);
    fixture.until_nothing_is_left().await?;
    fixture.expect("train", &[RunVerdict::Once]).await
}

/// The first copy that appears.
async fn next_copy(copies: &mut Follow<DynamicObject>) -> Result<Value> {
    loop {
        if let FollowedChange::Applied(copy) = copies.next().await {
            return Ok(serde_json::to_value(copy)?);
        }
    }
}

pub(crate) async fn a_job_is_evicted_from_a_worker_and_runs_again(
    tested: KindUnderTest,
) -> Result<()> {
    let fixture = KindFixture::new("withdrawn", tested).await?;
    fixture.room_on(2, 1).await?;
    fixture.quota_on_workers(1).await?;
    let (hub, tested) = (fixture.hub(), &fixture.tested);
    let submitted = fixture.submit_for_workers(&JobPlan::of("train", LONG)).await?;
    let before = tested.templates_of(&submitted);
    fixture.until_running(fixture.worker(2), "train").await?;
    let active = |job: &Value| tested.is_active(job);
    fixture.until_job(hub, "train", "shows the pods of its copy", active).await?;
    let workload = fixture.until_workload("train", "is there", |_| true).await?.name_any();

    fixture.activate(&workload, false).await?;
    let released = expect::is_deactivated;
    fixture.until_workload("train", "is evicted and holds nothing", released).await?;
    fixture.until_nothing_is_left().await?;
    let idle = |job: &Value| {
        tested.is_suspended(job) && !tested.is_active(job) && tested.templates_of(job) == before
    };
    fixture.until_job(hub, "train", "is suspended, idle and restored", idle).await?;

    fixture.activate(&workload, true).await?;
    let workers = &fixture.installation.workers;
    while_pods_end(workers, (fixture.namespace(), "train"), fixture.until_succeeded("train"))
        .await?;
    fixture.until_finished("train").await?;
    fixture.until_nothing_is_left().await?;
    fixture.expect("train", &[RunVerdict::Once, RunVerdict::Moved]).await
}

pub(crate) async fn a_job_is_deleted_while_it_runs_on_a_worker(
    tested: KindUnderTest,
) -> Result<()> {
    let fixture = KindFixture::new("removed", tested).await?;
    fixture.room_on(1, 1).await?;
    fixture.quota_on_workers(1).await?;
    fixture.submit_for_workers(&JobPlan::of("train", LONG)).await?;
    let running = fixture.until_running(fixture.worker(1), "train").await?.len();
    let workload = fixture.until_workload("train", "is there", |_| true).await?.name_any();
    let listed = (fixture.namespace(), &*workload);
    are_listed(&fixture.installation, listed, running).await?;
    fixture.delete(fixture.hub(), "train").await?;
    let workloads = fixture.workloads(fixture.hub());
    fixture.hub().until_gone(&workloads, &workload, 2 * TIMEOUT).await?;
    fixture.until_nothing_is_left().await
}
