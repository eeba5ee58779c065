//! A Job grows and shrinks while it runs.

use anyhow::{Result, ensure};

use crate::fixture::{ElasticFixture, Slice};

#[tokio::test]
async fn a_job_grows_by_slices_and_shrinks_in_place() -> Result<()> {
    let fixture = ElasticFixture::new("grows", 2).await?;
    let first = fixture.until_one_slice(2).await?;
    fixture.until_pods(2, 0).await?;
    ensure!(first.chain == first.name && first.replaces.is_empty(), "{first:?}");

    fixture.resize(4).await?;
    let second = fixture.until_one_slice(4).await?;
    fixture.until_pods(4, 0).await?;
    let replaced = format!("{}/{}", fixture.namespace(), first.name);
    ensure!(second.chain == first.name && second.replaces == replaced, "{second:?}");
    let over = |slices: &[Slice]| slices.iter().any(|one| one.ended == "WorkloadSliceReplaced");
    fixture.until_slices("the first one is replaced", over).await?;
    fixture.until_used("4").await?;

    fixture.resize(1).await?;
    let third = fixture.until_one_slice(1).await?;
    ensure!(third.name == second.name, "it shrank in place: {third:?}");
    fixture.until_pods(1, 0).await?;
    fixture.until_used("1").await?;

    // What it gave back is free for it again.
    fixture.resize(5).await?;
    fixture.until_one_slice(5).await?;
    fixture.until_pods(5, 0).await
}

#[tokio::test]
async fn pods_without_quota_stay_gated_while_the_others_run() -> Result<()> {
    let fixture = ElasticFixture::new("gated", 3).await?;
    fixture.until_pods(3, 0).await?;
    fixture.resize(9).await?;
    fixture.until_pods(3, 6).await?;
    let waits = |slices: &[Slice]| matches!(slices, [old, new] if old.admitted && old.ended.is_empty() && new.pods == 9 && !new.admitted);
    fixture.until_slices("a replacement waits", waits).await?;
    fixture.until_used("3").await?;
    // The replacement that waits is changed in place.
    fixture.resize(5).await?;
    fixture.until_one_slice(5).await?;
    fixture.until_pods(5, 0).await?;
    let two = |slices: &[Slice]| slices.len() == 2;
    fixture.until_slices("there was no third one", two).await?;
    Ok(())
}

#[tokio::test]
async fn ten_quick_resizes_leave_one_slice() -> Result<()> {
    let fixture = ElasticFixture::new("quick", 2).await?;
    fixture.until_pods(2, 0).await?;
    for pods in [3, 1, 5, 9, 2, 4, 1, 5, 3, 4] {
        fixture.resize(pods).await?;
    }
    fixture.until_one_slice(4).await?;
    fixture.until_pods(4, 0).await?;
    fixture.until_used("4").await?;
    fixture.delete_job().await?;
    fixture.until_slices("all slices are gone", <[Slice]>::is_empty).await?;
    fixture.until_used("0").await
}
