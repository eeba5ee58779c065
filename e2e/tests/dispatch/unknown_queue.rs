//! A Job whose queue does not exist stays pending.

use anyhow::Result;

use crate::{
    fixture::{DispatchFixture, said},
    objects,
};

#[tokio::test]
async fn a_job_reports_a_missing_queue_and_runs_once_it_exists() -> Result<()> {
    let fixture = DispatchFixture::shared("unknown_queue").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.submit(&objects::job("early", 2, "1", 1)).await?;
    let missing = "LocalQueue queue doesn't exist";
    fixture
        .until_workload("early", "names the missing queue", |one| {
            said(&one.status.conditions, "QuotaReserved")
                .is_some_and(|said| !said.status && said.message == missing)
        })
        .await?;

    fixture.queue("2").await?;
    fixture.expect_once("early", 2).await
}
