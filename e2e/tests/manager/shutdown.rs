//! A replica that stops: another one may lead at once, and requests are answered for a while.

use anyhow::{Result, ensure};
use crds::v1beta2::ResourceFlavor;
use e2e::installation::{Installation, InstallationPlan, InstallationPorts, NAMESPACE, TIMEOUT};
use harness::{Cluster, LabPlan, TestLab};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::PostParams};

/// The default of `leaderElection.resourceName`.
const LEASE: &str = "c1f6bfd2.kueue.x-k8s.io";

/// Longer than the test, which ends it by a second signal.
const DELAY: &str = "--shutdown-delay-duration=1h";

#[tokio::test]
async fn a_replica_that_stops_answers_and_leads_no_more() -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let plan = InstallationPlan { workers: 0, elects: true };
    let installation = Installation::of(&lab, plan, InstallationPorts::choose()?).await?;
    let installation = installation.with_flags(vec![DELAY.to_owned()]);
    installation.install().await?;
    let manager = installation.first_manager().await?;
    installation.aggregate_visibility().await?;
    let hub = &installation.hub;
    until_held(hub, true).await?;
    let ready = manager.probe("/readyz?verbose").await?;
    ensure!(ready.starts_with("HTTP/1.0 200"), "{ready}");
    for check in ["certificate", "facts", "pending-workloads", "shutdown"] {
        ensure!(ready.contains(&format!("[+]{check} ok")), "{ready}");
    }

    manager.process.ask_to_end()?;
    until_held(hub, false).await?;
    let ready = manager.probe("/readyz").await?;
    ensure!(ready.starts_with("HTTP/1.0 500"), "{ready}");
    ensure!(ready.contains("[-]shutdown failed: reason withheld"), "{ready}");
    let alive = manager.probe("/healthz").await?;
    ensure!(alive.starts_with("HTTP/1.0 200"), "{alive}");
    ensure!(manager.scrape().await?.contains("kueue_build_info"));
    // The API server refuses what a webhook does not answer.
    rehearse(hub, "rehearsed").await?;
    hub.kubectl(&["get", "--raw", "/apis/visibility.kueue.x-k8s.io/v1beta2"]).await?;

    let status = manager.process.terminate(TIMEOUT).await?;
    ensure!(status == "exit status: 0", "{}", manager.process.log_tail(20));
    ensure!(rehearse(hub, "refused").await.is_err(), "its webhooks are called");
    Ok(())
}

/// Waits until the Lease has a holder, or none.
async fn until_held(hub: &Cluster, wanted: bool) -> Result<()> {
    let leases: Api<Lease> = hub.api(NAMESPACE);
    let held = |lease: &Lease| {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        holder.is_some_and(|holder| !holder.is_empty()) == wanted
    };
    let what = if wanted { "is held" } else { "is released" };
    hub.until(&leases, LEASE, what, TIMEOUT, held).await?;
    Ok(())
}

/// Creates a ResourceFlavor, which is not stored.
async fn rehearse(hub: &Cluster, name: &str) -> Result<()> {
    let flavors: Api<ResourceFlavor> = hub.cluster_api();
    let mut flavor = ResourceFlavor::default();
    flavor.metadata.name = Some(name.to_owned());
    flavors.create(&PostParams { dry_run: true, ..PostParams::default() }, &flavor).await?;
    Ok(())
}
