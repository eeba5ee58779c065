//! A dispatched Job is withdrawn while it runs.

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use e2e::waits;
use harness::RunVerdict;
use kube::ResourceExt;
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, holds, said, with_label},
    objects,
};

#[tokio::test]
async fn a_job_is_withdrawn_when_it_is_deactivated_and_runs_when_it_is_activated_again()
-> Result<()> {
    let fixture = DispatchFixture::shared("deactivated").await?;
    fixture.nodes(2, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&objects::job("train", 2, "1", objects::LONG)).await?;
    fixture.until_running("train", 2, 2).await?;
    let workload =
        fixture.until_workload("train", "is admitted", |one| holds(one, "Admitted")).await?;
    let name = workload.name_any();
    fixture.change::<Workload>(&name, &json!({"spec": {"active": false}})).await?;
    let released = |one: &Workload| {
        one.status.admission.is_none() && holds(one, "Evicted") && !holds(one, "QuotaReserved")
    };
    let idle = fixture.until_workload("train", "holds nothing", released).await?;
    let evicted = said(&idle.status.conditions, "Evicted");
    ensure!(evicted.is_some_and(|said| said.reason == "Deactivated"), "{:?}", idle.status);
    fixture.until_nothing_is_left().await?;

    fixture.change::<Workload>(&name, &json!({"spec": {"active": true}})).await?;
    fixture.expect_once_when_ended("train", 2).await
}

#[tokio::test]
async fn a_higher_priority_takes_the_place_of_a_dispatched_job_which_finishes_later() -> Result<()>
{
    preempts("preempted", "2").await
}

#[tokio::test]
async fn a_higher_priority_takes_the_room_of_a_dispatched_job_while_quota_is_free() -> Result<()> {
    preempts("preempted_for_room", "20").await
}

/// Two cpus are on a worker, and so much quota is there for them.
async fn preempts(test: &str, quota: &str) -> Result<()> {
    let fixture = DispatchFixture::shared(test).await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue(quota).await?;
    fixture.until_reported(1).await?;
    let urgent = format!("{}-urgent", fixture.namespace());
    let class = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": {"name": urgent}, "value": 1000,
    });
    fixture.hub().apply(&class.to_string(), fixture.namespace()).await?;
    fixture.submit(&objects::job("victim", 2, "1", objects::LONG)).await?;
    fixture.until_running("victim", 2, 1).await?;

    let job = objects::job("urgent", 2, "1", 1);
    fixture.submit(&with_label(job, "kueue.x-k8s.io/priority-class", &urgent)).await?;
    let preempted = |one: &Workload| {
        said(&one.status.conditions, "Evicted").is_some_and(|said| said.reason == "Preempted")
    };
    fixture.until_workload("victim", "is preempted", preempted).await?;
    fixture.until_complete("urgent", e2e::installation::TIMEOUT).await?;
    let observer = fixture.space.observer();
    waits::ensure_verdict(observer, ("urgent", 2), &[RunVerdict::Once]).await?;
    fixture.expect_once_when_ended("victim", 2).await
}
