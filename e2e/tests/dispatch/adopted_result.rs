//! A job that ends well on a worker while the manager does not reach this (docs/reference/dispatch.md §6).

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use harness::{Fault, FaultProxy};
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, holds},
    objects,
};

/// The second worker behind a proxy, and a queue whose work is lost soon after the connection.
async fn prepare(fixture: &DispatchFixture) -> Result<FaultProxy> {
    let proxy = FaultProxy::start(fixture.worker(2)).await?;
    fixture.installation.register_behind(&proxy, fixture.worker(2)).await?;
    let name = fixture.namespace();
    fixture.nodes(2, 1, "2").await?;
    fixture.queue("4").await?;
    let text = [
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy",
            "metadata": {"name": name}, "spec": {"disconnection": {"lostAfter": "5s"}},
        }),
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
            "metadata": {"name": name, "annotations": {"sluice.dev/policy": name}},
            "spec": {"clusters": ["worker-1", "worker-2"]},
        }),
    ];
    fixture.hub().apply(&text.map(|one| one.to_string()).join("\n---\n"), name).await?;
    Ok(proxy)
}

/// Lost, and without room elsewhere.
fn waits_again(workload: &Workload) -> bool {
    holds(workload, "Evicted") && !holds(workload, "QuotaReserved")
}

async fn ends_unseen(fixture: &DispatchFixture, proxy: &FaultProxy) -> Result<()> {
    fixture.submit(&objects::job("train", 2, "1", 15)).await?;
    fixture.until_running("train", 2, 2).await?;
    proxy.set(Fault::Hang);
    fixture.until_workload("train", "waits for room", waits_again).await?;
    let copies = fixture.worker(2).api::<Job>(fixture.namespace());
    let complete = |job: &Job| objects::job_is(job, "Complete");
    fixture.worker(2).until(&copies, "train", "is complete", TIMEOUT, complete).await?;
    ensure!(
        !objects::job_is(&fixture.api::<Job>().get("train").await?, "Complete"),
        "it is cut off"
    );
    proxy.set(Fault::None);
    fixture.expect_once("train", 2).await?;
    let of_reason = ["-n", fixture.namespace(), "get", "events.events.k8s.io", "-o", "name"];
    let selector = ["--field-selector", "reason=ResultAdopted"];
    let events = fixture.hub().kubectl(&[of_reason.as_slice(), &selector].concat()).await?;
    ensure!(events.lines().count() == 1, "{events}");
    Ok(())
}

#[tokio::test]
async fn a_job_that_ended_on_a_lost_worker_is_not_run_again() -> Result<()> {
    let fixture = DispatchFixture::alone("adopted").await?;
    let proxy = prepare(&fixture).await?;
    let outcome = ends_unseen(&fixture, &proxy).await;
    drop(proxy);
    fixture.installation.register().await?;
    fixture.until_worker("worker-2", "is active again", |said| said.status).await?;
    outcome
}
