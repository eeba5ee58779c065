//! An unreachable worker delays only its own Jobs (docs/reference/multikueue.md §1.2, §2.8).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use harness::Component;
use k8s_openapi::api::batch::v1::Job;

use crate::{
    fixture::{DispatchFixture, ReportedCondition, delete, said},
    objects,
};

/// The first worker has capacity for two small pods, the second for exactly one large pod.
async fn prepare(fixture: &DispatchFixture) -> Result<()> {
    fixture.nodes(1, 1, "2").await?;
    fixture.nodes(2, 1, "4").await?;
    fixture.queue("8").await
}

/// The large Job runs on the second worker.
async fn start_large(fixture: &DispatchFixture) -> Result<()> {
    // Longer than the small Jobs take on a slow machine: once it ends, they have room beside it.
    fixture.submit(&objects::job("large", 1, "4", 40)).await?;
    fixture.until_running("large", 1, 2).await
}

/// Jobs run on the first worker while the second is unreachable and reported as such.
async fn others_go_on(fixture: &DispatchFixture) -> Result<()> {
    for name in ["small-1", "small-2", "small-3"] {
        fixture.submit(&objects::job(name, 2, "1", 1)).await?;
    }
    for name in ["small-1", "small-2", "small-3"] {
        fixture.until_complete(name, TIMEOUT).await?;
        let judgement = fixture.space.observer().ledger().judge(name, 2);
        ensure!(judgement.runs.iter().all(|run| run.cluster == "worker-1"), "{judgement}");
    }
    let failed = |said: &ReportedCondition| !said.status && said.reason == "ClientConnectionFailed";
    let said = fixture.until_worker("worker-2", "says that it is away", failed).await?;
    let (_, tried) = said.message.split_once("; connection attempts: ").context("attempts")?;
    let (attempts, next) = tried.split_once(", next connection attempt: ").context("the next")?;
    attempts.parse::<u32>().context("a number of attempts")?;
    next.parse::<k8s_openapi::jiff::Timestamp>().context("the time of the next")?;
    ensure!(next.ends_with('Z') && !next.contains('.'), "{next}");
    Ok(())
}

async fn all_ran_once(fixture: &DispatchFixture) -> Result<()> {
    fixture.until_worker("worker-2", "is active again", |said| said.status).await?;
    for (name, pods) in [("large", 1), ("small-1", 2), ("small-2", 2), ("small-3", 2)] {
        fixture.expect_once(name, pods).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_hanging_worker_does_not_delay_other_workers_and_finishes_its_job_once() -> Result<()> {
    let fixture = DispatchFixture::alone("worker_hangs").await?;
    prepare(&fixture).await?;
    start_large(&fixture).await?;
    fixture.worker(2).pause(Component::ApiServer)?;
    others_go_on(&fixture).await?;
    fixture.worker(2).resume(Component::ApiServer)?;
    all_ran_once(&fixture).await
}

/// The API server goes on answering `/version`, which needs no store.
#[tokio::test]
async fn a_worker_whose_store_hangs_does_not_delay_other_workers_and_finishes_its_job_once()
-> Result<()> {
    let fixture = DispatchFixture::alone("store_hangs").await?;
    prepare(&fixture).await?;
    start_large(&fixture).await?;
    fixture.worker(2).pause(Component::Etcd)?;
    let outcome = others_go_on(&fixture).await;
    fixture.worker(2).resume(Component::Etcd)?;
    outcome?;
    all_ran_once(&fixture).await
}

/// The managers of these tests have a `workerLostTimeout` of a minute.
#[tokio::test]
async fn the_job_of_a_hanging_worker_starts_elsewhere_after_the_timeout_and_only_that_copy_stays()
-> Result<()> {
    let fixture = DispatchFixture::alone("worker_lost").await?;
    fixture.nodes(2, 1, "4").await?;
    fixture.queue("8").await?;
    fixture.submit(&objects::job("large", 1, "4", 3600)).await?;
    fixture.until_running("large", 1, 2).await?;
    let recorded = |one: &Workload| one.status.cluster_name.as_deref() == Some("worker-2");
    fixture.until_workload("large", "is recorded there", recorded).await?;
    fixture.worker(2).pause(Component::ApiServer)?;
    let moved = moves_to_first(&fixture).await;
    fixture.worker(2).resume(Component::ApiServer)?;
    moved?;
    let (worker, namespace) = (fixture.worker(2), fixture.namespace());
    let copies = worker.api::<Job>(namespace);
    let what = "the old copy is removed";
    worker.until_all(&copies, "", what, 2 * TIMEOUT, <[Job]>::is_empty).await?;
    fixture.until_running("large", 1, 1).await?;
    delete(&fixture.api::<Job>(), "large").await?;
    fixture.until_nothing_is_left().await
}

async fn moves_to_first(fixture: &DispatchFixture) -> Result<()> {
    let failed = |said: &ReportedCondition| !said.status && said.reason == "ClientConnectionFailed";
    fixture.until_worker("worker-2", "says that it is away", failed).await?;
    fixture.nodes(1, 1, "4").await?;
    let moved = |one: &Workload| one.status.cluster_name.as_deref() == Some("worker-1");
    let all = |all: &[Workload]| all.iter().any(moved);
    fixture.hub().until_all(&fixture.api(), "", "the Workload moves", 3 * TIMEOUT, all).await?;
    fixture.until_running("large", 1, 1).await
}

#[tokio::test]
async fn a_killed_and_restarted_worker_finishes_its_job_once() -> Result<()> {
    let fixture = DispatchFixture::alone("worker_killed").await?;
    prepare(&fixture).await?;
    start_large(&fixture).await?;
    fixture.worker(2).kill(Component::ApiServer)?;
    others_go_on(&fixture).await?;
    fixture.worker(2).restart(Component::ApiServer).await?;
    fixture.worker(2).restart_clients().await?;
    all_ran_once(&fixture).await
}

#[tokio::test]
async fn a_worker_that_is_down_when_the_manager_starts_is_used_later() -> Result<()> {
    let fixture = DispatchFixture::alone("worker_down_at_start").await?;
    prepare(&fixture).await?;
    let mut manager = fixture.shared.manager.lock().await;
    manager.take().context("a manager")?.process.terminate(TIMEOUT).await?;
    fixture.worker(2).kill(Component::ApiServer)?;
    *manager = Some(fixture.installation.first_manager().await?);
    fixture.submit(&objects::job("large", 1, "4", 1)).await?;
    others_go_on(&fixture).await?;
    let away = |one: &Workload| {
        said(&one.status.conditions, "QuotaReserved")
            .is_some_and(|said| said.message.ends_with("; worker-2: not connected"))
    };
    fixture.until_workload("large", "waits for the worker", away).await?;
    fixture.worker(2).restart(Component::ApiServer).await?;
    fixture.worker(2).restart_clients().await?;
    all_ran_once(&fixture).await
}
