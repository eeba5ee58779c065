//! The generated roles of a declared kind.

use anyhow::{Result, ensure};
use e2e::audit_log::{asked, forbidden};

use crate::{
    fixture::KindFixture,
    kind_under_test::{JobPlan, KindUnderTest, TRAINING},
};

#[tokio::test]
async fn no_request_about_a_declared_kind_is_forbidden() -> Result<()> {
    let fixture = KindFixture::new("rights", KindUnderTest::training(TRAINING)?).await?;
    fixture.room_on(1, 1).await?;
    fixture.quota_on_workers(1).await?;
    fixture.submit_for_workers(&JobPlan::of("train", 1)).await?;
    fixture.until_finished("train").await?;
    fixture.until_nothing_is_left().await?;
    let (hub, worker) = (fixture.hub(), fixture.worker(1));
    for (cluster, account) in
        [(hub, "sluice-manager"), (worker, "sluice-hub"), (worker, "sluice-agent")]
    {
        let own = asked(cluster, account, None)?;
        let trainings = own.iter().filter(|request| request.contains("/trainings"));
        ensure!(trainings.count() > 0, "{account} asked {} for no Training", cluster.name());
        let refused = forbidden(cluster, account)?;
        ensure!(refused.is_empty(), "{account} on {}: {refused:#?}", cluster.name());
    }
    Ok(())
}
