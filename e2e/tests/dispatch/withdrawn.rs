//! A dispatched Job is taken back while it runs.

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use kube::ResourceExt;
use serde_json::json;

use crate::{
    place,
    site::{Site, holds, said, with_label},
};

#[tokio::test]
async fn a_job_is_withdrawn_when_it_is_deactivated_and_runs_when_it_is_activated_again()
-> Result<()> {
    let site = Site::shared("deactivated").await?;
    site.nodes(2, 1, "2").await?;
    site.queue("2").await?;
    site.submit(&place::job("train", 2, "1", 8)).await?;
    site.until_running("train", 2, 2).await?;
    let workload =
        site.until_workload("train", "is admitted", |one| holds(one, "Admitted")).await?;
    let name = workload.name_any();
    site.change::<Workload>(&name, &json!({"spec": {"active": false}})).await?;
    let released = |one: &Workload| {
        one.status.admission.is_none() && holds(one, "Evicted") && !holds(one, "QuotaReserved")
    };
    let idle = site.until_workload("train", "holds nothing", released).await?;
    let evicted = said(&idle.status.conditions, "Evicted");
    ensure!(evicted.is_some_and(|said| said.reason == "Deactivated"), "{:?}", idle.status);
    site.until_nothing_is_left().await?;

    site.change::<Workload>(&name, &json!({"spec": {"active": true}})).await?;
    site.expect_once_in_the_end("train", 2).await
}

#[tokio::test]
async fn a_higher_priority_takes_the_place_of_a_dispatched_job_which_finishes_later() -> Result<()>
{
    let site = Site::shared("preempted").await?;
    site.nodes(1, 1, "2").await?;
    site.queue("2").await?;
    let urgent = format!("{}-urgent", site.namespace());
    let class = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": {"name": urgent}, "value": 1000,
    });
    site.hub().apply(&class.to_string(), site.namespace()).await?;
    site.submit(&place::job("victim", 2, "1", 20)).await?;
    site.until_running("victim", 2, 1).await?;

    let job = place::job("urgent", 2, "1", 1);
    site.submit(&with_label(job, "kueue.x-k8s.io/priority-class", &urgent)).await?;
    let preempted = |one: &Workload| {
        said(&one.status.conditions, "Evicted").is_some_and(|said| said.reason == "Preempted")
    };
    site.until_workload("victim", "is preempted", preempted).await?;
    site.until_complete("urgent", e2e::world::SOON).await?;
    let once = site.space.observer().judge("urgent", 2, e2e::world::SOON).await?;
    ensure!(once.verdict == harness::Verdict::Once, "{once}");
    site.expect_once_in_the_end("victim", 2).await
}
