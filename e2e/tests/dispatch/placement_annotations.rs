//! Annotations of a Job that say where it is placed, and under which guarantee (docs/reference/dispatch.md §3).

use anyhow::{Result, ensure};
use crds::v1beta2::{MultiKueueCluster, Workload};
use e2e::installation::TIMEOUT;
use harness::{Fault, FaultProxy};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    cut_off::{self, worker_behind_proxy},
    fixture::{DispatchFixture, delete, holds, said, with_annotation},
    objects,
};

/// Labels a worker with this tier of the test, which names the label.
async fn label(fixture: &DispatchFixture, worker: &str, tier: &str) -> Result<()> {
    let labels = json!({"metadata": {"labels": {tier_of(fixture): tier}}});
    let workers = fixture.hub().cluster_api::<MultiKueueCluster>();
    workers.patch(worker, &PatchParams::default(), &Patch::Merge(labels)).await?;
    Ok(())
}

/// The label of this test. Others run beside it on the same workers.
fn tier_of(fixture: &DispatchFixture) -> String {
    format!("{}/tier", fixture.namespace())
}

/// A Job of one pod without an end, with one annotation.
fn annotated(name: &str, key: &str, value: &str) -> Value {
    with_annotation(objects::job(name, 1, "1", objects::LONG), key, value)
}

/// Waits until the Workload of a Job waits with a message that contains this.
async fn until_waiting(fixture: &DispatchFixture, job: &str, part: &str) -> Result<()> {
    let waits = |one: &Workload| {
        let said = said(&one.status.conditions, "QuotaReserved");
        said.is_some_and(|said| !said.status && said.message.contains(part))
    };
    fixture.until_workload(job, &format!("says \"{part}\""), waits).await?;
    Ok(())
}

/// Both workers have room. The first one ranks better, and the second one has the label.
async fn two_workers(test: &str) -> Result<DispatchFixture> {
    let fixture = DispatchFixture::shared(test).await?;
    fixture.nodes(1, 1, "20").await?;
    fixture.nodes(2, 1, "2").await?;
    fixture.ordered_queue("40").await?;
    label(&fixture, "worker-2", "gold").await?;
    fixture.until_free(1, 20).await?;
    fixture.until_free(2, 2).await?;
    Ok(fixture)
}

#[tokio::test]
async fn an_affinity_admits_no_other_worker_and_follows_the_labels_of_workers() -> Result<()> {
    let fixture = two_workers("affinity").await?;
    let affinity = |job: &str, tier: &str| {
        annotated(job, "sluice.dev/affinity", &format!("{}={tier}", tier_of(&fixture)))
    };
    for job in ["first", "second"] {
        fixture.submit(&affinity(job, "gold")).await?;
        fixture.until_running(job, 1, 2).await?;
    }
    fixture.submit(&affinity("third", "gold")).await?;
    until_waiting(&fixture, "third", "worker-1: does not match the cluster affinity").await?;

    fixture.submit(&affinity("silver", "silver")).await?;
    for worker in ["worker-1", "worker-2"] {
        let part = format!("{worker}: does not match the cluster affinity");
        until_waiting(&fixture, "silver", &part).await?;
    }
    label(&fixture, "worker-1", "silver").await?;
    fixture.until_running("silver", 1, 1).await
}

#[tokio::test]
async fn a_preferred_affinity_ranks_a_worker_first_and_waits_for_none() -> Result<()> {
    let fixture = two_workers("preferred_affinity").await?;
    let gold = format!("{}=gold", tier_of(&fixture));
    for (job, worker) in [("first", 2), ("second", 2), ("third", 1)] {
        fixture.submit(&annotated(job, "sluice.dev/preferred-affinity", &gold)).await?;
        fixture.until_running(job, 1, worker).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_job_with_a_bad_annotation_is_not_placed_and_says_why() -> Result<()> {
    let fixture = two_workers("bad_annotations").await?;
    for (job, key, value, problem) in [
        ("affinity", "affinity", "a=(", "\"a=(\" has an invalid key or value"),
        ("preferred", "preferred-affinity", "a=(", "\"a=(\" has an invalid key or value"),
        ("execution", "execution", "Once", "\"Once\" is neither ExactlyOnce nor KeepRunning"),
        (
            "checkpoint",
            "checkpoint",
            "here",
            "\"here\" is none of anywhere, preferred and required",
        ),
    ] {
        let key = format!("sluice.dev/{key}");
        fixture.submit(&annotated(job, &key, value)).await?;
        until_waiting(&fixture, job, &format!("annotation {key}: {problem}")).await?;
    }
    // The others do not wait behind them.
    fixture.submit(&objects::job("plain", 1, "1", 1)).await?;
    fixture.until_complete("plain", 2 * TIMEOUT).await
}

#[tokio::test]
async fn a_job_that_asks_for_exactly_once_does_not_start_elsewhere_under_a_policy_that_keeps_running()
-> Result<()> {
    let fixture = DispatchFixture::alone("execution").await?;
    let policy = json!({"execution": "KeepRunning", "lostAfter": "5s"});
    let proxy = worker_behind_proxy(&fixture, &policy).await?;
    let outcome = one_waits_and_one_moves(&fixture, &proxy).await;
    cut_off::reconnect(&fixture, proxy).await?;
    outcome?;
    fixture.expect_once_when_ended("once", 1).await
}

async fn one_waits_and_one_moves(fixture: &DispatchFixture, proxy: &FaultProxy) -> Result<()> {
    fixture.submit(&annotated("once", "sluice.dev/execution", "ExactlyOnce")).await?;
    fixture.submit(&objects::job("plain", 1, "1", objects::LONG)).await?;
    for job in ["once", "plain"] {
        fixture.until_running(job, 1, 2).await?;
        fixture.until_workload(job, "is admitted", |one| holds(one, "Admitted")).await?;
    }
    fixture.nodes(1, 1, "2").await?;
    proxy.set(Fault::Hang);
    let waits = |one: &Workload| {
        let mut checks = one.status.admission_checks.iter();
        checks.any(|check| check.message.contains("WaitingForFence"))
    };
    fixture.until_running("plain", 1, 1).await?;
    let once = fixture.until_workload("once", "waits for its fence", waits).await?;
    ensure!(once.status.cluster_name.as_deref() == Some("worker-2"), "{:?}", once.status);
    proxy.set(Fault::None);
    delete(&fixture.api::<Job>(), "plain").await
}
