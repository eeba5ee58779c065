//! A job that ends well on a worker while the manager does not reach this (docs/reference/dispatch.md §6).

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use harness::{Fault, FaultProxy};
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use crate::{
    cut_off::{reconnect, worker_behind_proxy},
    fixture::{DispatchFixture, holds},
    objects,
};

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
    let proxy = worker_behind_proxy(&fixture, &json!({"lostAfter": "5s"})).await?;
    let outcome = ends_unseen(&fixture, &proxy).await;
    reconnect(&fixture, proxy).await?;
    outcome
}
