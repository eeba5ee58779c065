//! The leader is killed; the standby goes on with what it finds (docs/reference/dispatch.md §6).

use anyhow::{Context, Result};
use e2e::world::{NAMESPACE, SOON};
use k8s_openapi::api::coordination::v1::Lease;

use crate::{
    house::House,
    place,
    site::{Site, holds},
};

/// The lease of upstream's manager.
const LEASE: &str = "c1f6bfd2.kueue.x-k8s.io";

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// Waits until another than `before` leads; who.
async fn until_led_by_another(site: &Site, before: &str) -> Result<String> {
    let leases = site.hub().api::<Lease>(NAMESPACE);
    let led = |lease: &Lease| ![before, ""].contains(&holder(lease));
    let lease = site.hub().until(&leases, LEASE, "has a new holder", SOON, led).await?;
    Ok(holder(&lease).to_owned())
}

#[tokio::test]
async fn every_job_runs_once_when_the_leader_is_killed() -> Result<()> {
    let site = Site::alone("takeover").await?;
    let mut shared = House::alone().await?.manager.lock().await;
    // The leader must not be the one that answers the webhooks: those of a standby go on.
    let first = until_led_by_another(&site, "").await?;
    let leader = site.world.manager(false, &[]).await?;
    shared.take().context("a manager")?.process.terminate(SOON).await?;
    let second = until_led_by_another(&site, &first).await?;
    *shared = Some(site.world.manager(true, &[]).await?);

    for number in [1, 2] {
        site.nodes(number, 1, "2").await?;
    }
    site.queue("4").await?;
    site.submit(&place::job("done", 2, "1", 1)).await?;
    site.expect_once("done", 2).await?;
    for name in ["runs-1", "runs-2"] {
        site.submit(&place::job(name, 2, "1", 8)).await?;
    }
    for name in ["runs-1", "runs-2"] {
        site.until_workload(name, "is admitted", |one| holds(one, "Admitted")).await?;
    }
    for name in ["waits-1", "waits-2"] {
        site.submit(&place::job(name, 2, "1", 1)).await?;
    }
    leader.process.kill().await?;
    site.submit(&place::job("new", 2, "1", 1)).await?;
    until_led_by_another(&site, &second).await?;
    for name in ["runs-1", "runs-2", "waits-1", "waits-2", "new"] {
        site.expect_once(name, 2).await?;
    }
    Ok(())
}
