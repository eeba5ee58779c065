//! The programs send no request that their roles forbid.

use anyhow::{Result, ensure};
use e2e::audit_log::{asked, forbidden};

use crate::{fixture::DispatchFixture, objects};

#[tokio::test]
async fn no_request_is_forbidden_from_submission_to_the_end_of_a_job() -> Result<()> {
    let fixture = DispatchFixture::shared("rights").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&objects::job("train", 2, "1", 1)).await?;
    fixture.expect_once("train", 2).await?;
    let (hub, worker) = (fixture.hub(), fixture.worker(1));
    for (cluster, account) in
        [(hub, "sluice-manager"), (worker, "sluice-hub"), (worker, "sluice-agent")]
    {
        let n_asked = asked(cluster, account, None)?.len();
        ensure!(n_asked > 0, "{account} asked {} for nothing", cluster.name());
        let refused = forbidden(cluster, account)?;
        ensure!(refused.is_empty(), "{account} on {}: {refused:#?}", cluster.name());
    }
    Ok(())
}
