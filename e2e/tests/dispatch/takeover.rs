//! The leader is killed; the standby continues (docs/reference/dispatch.md §6).

use anyhow::{Context, Result};
use e2e::installation::{NAMESPACE, TIMEOUT};
use k8s_openapi::api::coordination::v1::Lease;

use crate::{
    fixture::{DispatchFixture, holds},
    objects,
};

/// The lease of upstream's manager.
const LEASE: &str = "c1f6bfd2.kueue.x-k8s.io";

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// Waits until another process than `before` leads. Returns its identity.
async fn until_led_by_another(fixture: &DispatchFixture, before: &str) -> Result<String> {
    let leases = fixture.hub().api::<Lease>(NAMESPACE);
    let has_new_holder = |lease: &Lease| ![before, ""].contains(&holder(lease));
    let lease =
        fixture.hub().until(&leases, LEASE, "has a new holder", TIMEOUT, has_new_holder).await?;
    Ok(holder(&lease).to_owned())
}

#[tokio::test]
async fn every_job_runs_once_when_the_leader_is_killed() -> Result<()> {
    let fixture = DispatchFixture::alone("takeover").await?;
    let mut shared = fixture.shared.manager.lock().await;
    // The leader must not serve the webhooks, because those of the standby stay available.
    let first = until_led_by_another(&fixture, "").await?;
    let leader = fixture.installation.manager(false, &[]).await?;
    shared.take().context("a manager")?.process.terminate(TIMEOUT).await?;
    let second = until_led_by_another(&fixture, &first).await?;
    *shared = Some(fixture.installation.manager(true, &[]).await?);

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
    until_led_by_another(&fixture, &second).await?;
    for name in ["runs-1", "runs-2", "waits-1", "waits-2", "new"] {
        fixture.expect_once(name, 2).await?;
    }
    Ok(())
}
