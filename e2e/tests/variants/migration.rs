//! A Job takes the worse flavor, and moves to the better one once that has room.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use kube::ResourceExt;

use crate::fixture::{LONG, VariantsFixture};

const TRY_PREFERRED: &str = "TryPreferredFlavors";

#[tokio::test]
async fn a_job_moves_to_the_better_flavor() -> Result<()> {
    let fixture = VariantsFixture::new("moves", TRY_PREFERRED, ["0", "4"]).await?;
    fixture.submit("train", 2, LONG, false).await?;
    let parent = fixture.until_admitted("train", "worse").await?;
    ensure!(parent.labels().contains_key("kueue.x-k8s.io/concurrent-admission-parent"));
    fixture.until_runs_on("train", "worse", 2).await?;
    fixture.until_used(["0", "2"], 1).await?;

    fixture.change_quota(["4", "4"]).await?;
    let moved = fixture.until_admitted("train", "best").await?;
    ensure!(moved.name_any() == parent.name_any(), "the Workload of the Job stays");
    fixture.until_runs_on("train", "best", 2).await?;
    fixture.until_used(["2", "0"], 1).await?;
    let inactive = |all: &[Workload]| {
        let worse = fixture.variant(all, "train", "worse");
        all.len() == 3 && worse.is_some_and(|one| one.spec.active == Some(false))
    };
    fixture.until_workloads("the worse variant competes no longer", inactive).await?;
    let all = fixture.until_workloads("they stay", |all| all.len() == 3).await?;
    let evictions = |flavor: &str| {
        let one = fixture.variant(&all, "train", flavor)?;
        let stats = one.status.scheduling_stats.as_ref();
        Some(stats.map_or(0, |stats| {
            stats.evictions.iter().filter(|one| one.reason == "FlavorMigration").count()
        }))
    };
    ensure!(evictions("worse").context("a variant")? == 1);
    ensure!(evictions("best").context("a variant")? == 0);

    fixture.delete("train").await?;
    fixture.until_workloads("nothing is left", <[Workload]>::is_empty).await?;
    fixture.until_used(["0", "0"], 0).await
}

#[tokio::test]
async fn a_manager_that_starts_again_goes_on_with_the_migration() -> Result<()> {
    let mut fixture = VariantsFixture::new("restarted", TRY_PREFERRED, ["0", "4"]).await?;
    fixture.submit("train", 2, LONG, false).await?;
    fixture.until_runs_on("train", "worse", 2).await?;
    fixture.change_quota(["4", "4"]).await?;
    let leaves = |all: &[Workload]| {
        let worse = fixture.variant(all, "train", "worse");
        worse.is_some_and(|one| crds::meta::is_true(&one.status.conditions, "Evicted"))
    };
    fixture.until_workloads("the worse variant is evicted", leaves).await?;
    fixture.restart_manager().await?;
    fixture.until_admitted("train", "best").await?;
    fixture.until_runs_on("train", "best", 2).await?;
    fixture.until_used(["2", "0"], 1).await?;
    fixture.delete("train").await?;
    fixture.until_workloads("nothing is left", <[Workload]>::is_empty).await?;
    Ok(())
}
