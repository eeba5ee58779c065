//! The leader is killed; the standby continues (docs/reference/dispatch.md §6).

use anyhow::{Context, Result};
use e2e::{installation::TIMEOUT, waits::until_led_by_another};

use crate::{
    fixture::{DispatchFixture, holds},
    objects,
};

#[tokio::test]
async fn every_job_runs_once_when_the_leader_is_killed() -> Result<()> {
    let fixture = DispatchFixture::alone("takeover").await?;
    let mut shared = fixture.shared.manager.lock().await;
    // The leader must not serve the webhooks, because those of the standby stay available.
    let first = until_led_by_another(fixture.hub(), "", TIMEOUT).await?;
    let leader = fixture.installation.further_manager().await?;
    shared.take().context("a manager")?.process.terminate(TIMEOUT).await?;
    let second = until_led_by_another(fixture.hub(), &first, TIMEOUT).await?;
    *shared = Some(fixture.installation.first_manager().await?);

    for number in [1, 2] {
        fixture.nodes(number, 1, "2").await?;
    }
    fixture.queue("4").await?;
    fixture.submit(&objects::job("done", 2, "1", 1)).await?;
    fixture.expect_once("done", 2).await?;
    for name in ["runs-1", "runs-2"] {
        fixture.submit(&objects::job(name, 2, "1", 8)).await?;
    }
    for name in ["runs-1", "runs-2"] {
        fixture.until_workload(name, "is admitted", |one| holds(one, "Admitted")).await?;
    }
    for name in ["waits-1", "waits-2"] {
        fixture.submit(&objects::job(name, 2, "1", 1)).await?;
    }
    leader.process.kill().await?;
    fixture.submit(&objects::job("new", 2, "1", 1)).await?;
    until_led_by_another(fixture.hub(), &second, TIMEOUT).await?;
    for name in ["runs-1", "runs-2", "waits-1", "waits-2", "new"] {
        fixture.expect_once(name, 2).await?;
    }
    Ok(())
}
