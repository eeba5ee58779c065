//! A Job whose queue is not there waits for it.

use anyhow::Result;

use crate::{
    place,
    site::{Site, said},
};

#[tokio::test]
async fn a_job_says_which_queue_is_missing_and_runs_once_it_is_there() -> Result<()> {
    let site = Site::shared("unknown_queue").await?;
    site.nodes(1, 1, "2").await?;
    site.submit(&place::job("early", 2, "1", 1)).await?;
    let missing = "LocalQueue queue doesn't exist";
    site.until_workload("early", "names the missing queue", |one| {
        said(&one.status.conditions, "QuotaReserved")
            .is_some_and(|said| !said.status && said.message == missing)
    })
    .await?;

    site.queue("2").await?;
    site.expect_once("early", 2).await
}
