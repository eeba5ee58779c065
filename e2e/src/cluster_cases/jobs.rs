//! Jobs that succeed and fail, and their status on the manager.

use anyhow::{Context, Result, ensure};

use super::{CasePlace, place};

/// Long enough to be seen running.
const A_WHILE: u32 = 5;

pub(super) async fn succeeds(place: &CasePlace<'_>) -> Result<()> {
    place.queue(2).await?;
    place.submit(&place::job("train", 2, A_WHILE)).await?;
    let (job, _) = place.until_ended("train", "Complete").await?;
    let status = job.status.context("the status of the Job")?;
    ensure!(status.succeeded == Some(2), "{status:?}");
    ensure!(status.start_time.is_some() && status.completion_time.is_some(), "{status:?}");
    place.until_nothing_is_left().await?;
    place.ensure_once("train", 2).await.map(drop)
}

pub(super) async fn fails(place: &CasePlace<'_>) -> Result<()> {
    place.queue(1).await?;
    place.submit(&place::failing_with(place::job("train", 1, 1), 7)).await?;
    let (_, end) = place.until_ended("train", "Failed").await?;
    let message = end.message.unwrap_or_default();
    ensure!(message.contains("failed with exit code 7"), "{message}");
    place.until_nothing_is_left().await?;
    // One run, and no pod of it succeeded.
    place.ensure_once("train", 0).await.map(drop)
}
