//! A worker whose API server is away costs nobody but its own Jobs, and those only time (docs/reference/multikueue.md §1.2, §2.8).

use anyhow::{Context, Result, ensure};
use e2e::world::SOON;
use harness::Component;

use crate::{
    house::House,
    place,
    site::{Said, Site, said},
};

/// The first worker has room for two small pods, the second for a large one and nothing beside it.
async fn prepare(site: &Site) -> Result<()> {
    site.nodes(1, 1, "2").await?;
    site.nodes(2, 1, "4").await?;
    site.queue("8").await
}

/// The large Job runs on the second worker.
async fn start_large(site: &Site) -> Result<()> {
    site.submit(&place::job("large", 1, "4", 15)).await?;
    site.until_running("large", 1, 2).await
}

/// Jobs for the first worker come and go while the second is away, which is said.
async fn others_go_on(site: &Site) -> Result<()> {
    for name in ["small-1", "small-2", "small-3"] {
        site.submit(&place::job(name, 2, "1", 1)).await?;
    }
    for name in ["small-1", "small-2", "small-3"] {
        site.until_complete(name, SOON).await?;
        let judgement = site.space.observer().ledger().judge(name, 2);
        ensure!(judgement.runs.iter().all(|run| run.cluster == "worker-1"), "{judgement}");
    }
    let failed = |said: &Said| !said.status && said.reason == "ClientConnectionFailed";
    let said = site.until_worker("worker-2", "says that it is away", failed).await?;
    let (_, tried) = said.message.split_once("; connection attempts: ").context("attempts")?;
    let (attempts, next) = tried.split_once(", next connection attempt: ").context("the next")?;
    attempts.parse::<u32>().context("a number of attempts")?;
    next.parse::<k8s_openapi::jiff::Timestamp>().context("the time of the next")?;
    ensure!(next.ends_with('Z') && !next.contains('.'), "{next}");
    Ok(())
}

async fn all_ran_once(site: &Site) -> Result<()> {
    site.until_worker("worker-2", "is active again", |said| said.status).await?;
    for (name, pods) in [("large", 1), ("small-1", 2), ("small-2", 2), ("small-3", 2)] {
        site.expect_once(name, pods).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_worker_that_hangs_for_a_while_delays_nobody_and_finishes_its_job_once() -> Result<()> {
    let site = Site::alone("worker_hangs").await?;
    prepare(&site).await?;
    start_large(&site).await?;
    site.worker(2).pause(Component::ApiServer)?;
    others_go_on(&site).await?;
    site.worker(2).resume(Component::ApiServer)?;
    all_ran_once(&site).await
}

#[tokio::test]
async fn a_worker_that_was_killed_and_comes_back_finishes_its_job_once() -> Result<()> {
    let site = Site::alone("worker_killed").await?;
    prepare(&site).await?;
    start_large(&site).await?;
    site.worker(2).kill(Component::ApiServer)?;
    others_go_on(&site).await?;
    site.worker(2).restart(Component::ApiServer).await?;
    site.worker(2).restart_clients().await?;
    all_ran_once(&site).await
}

#[tokio::test]
async fn a_worker_that_is_down_when_the_manager_starts_is_used_when_it_comes() -> Result<()> {
    let site = Site::alone("worker_down_at_start").await?;
    prepare(&site).await?;
    let mut manager = House::alone().await?.manager.lock().await;
    manager.take().context("a manager")?.process.terminate(SOON).await?;
    site.worker(2).kill(Component::ApiServer)?;
    *manager = Some(site.world.manager(true, &[]).await?);
    site.submit(&place::job("large", 1, "4", 1)).await?;
    others_go_on(&site).await?;
    let away = |one: &crds::v1beta2::Workload| {
        said(&one.status.conditions, "QuotaReserved")
            .is_some_and(|said| said.message.ends_with("; worker-2: not connected"))
    };
    site.until_workload("large", "waits for the worker", away).await?;
    site.worker(2).restart(Component::ApiServer).await?;
    site.worker(2).restart_clients().await?;
    all_ran_once(&site).await
}
