//! Jobs on the manager's own cluster.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use crds::{meta::is_true, names::conditions::QUOTA_RESERVED, v1beta2::Workload};
use e2e::{
    installation::TIMEOUT,
    listed_pods::are_listed,
    objects::{self, LONG},
};
use harness::RunVerdict;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{ResourceExt, api::PostParams};
use serde_json::{Value, json};

use crate::{
    expect,
    fixture::KindFixture,
    kind_under_test::{JobPlan, KindUnderTest},
};

/// Two jobs, one after the other: there is quota for one.
pub(crate) async fn a_job_waits_runs_and_succeeds(tested: KindUnderTest) -> Result<()> {
    let fixture = KindFixture::new("succeeds", tested).await?;
    fixture.room_on_hub(1).await?;
    let (hub, tested) = (fixture.hub(), &fixture.tested);
    let first = fixture.submit(&JobPlan::of("first", 5)).await?;
    ensure!(tested.is_suspended(&first), "by the webhook: {first}");
    let workload = fixture.until_workload("first", "exists", |_| true).await?;
    expect::is_workload_of(tested, &workload, &first)?;
    // Before the queue is active both would wait, and of two Workloads of one second either may be the first.
    let reserved = |one: &Workload| is_true(&one.status.conditions, QUOTA_RESERVED);
    fixture.until_workload("first", "has quota", reserved).await?;
    let second = fixture.submit(&JobPlan::of("second", 1)).await?;
    ensure!(tested.is_suspended(&second), "by the webhook: {second}");

    let started = fixture.until_started(hub, "first").await?;
    expect::is_started(tested, &started, &workload, fixture.namespace())?;
    fixture.until_running(hub, "first").await?;
    let active = |job: &Value| tested.is_active(job);
    fixture.until_job(hub, "first", "shows its pods", active).await?;
    fixture.until_succeeded("first").await?;
    let first = fixture.until_finished("first").await?;
    let finished = expect::condition(&first, "Finished").context("a result")?;
    ensure!(finished.reason == "Succeeded", "{finished:?}");

    fixture.until_succeeded("second").await?;
    let second = fixture.until_finished("second").await?;
    for job in ["first", "second"] {
        fixture.expect(job, &[RunVerdict::Once]).await?;
    }
    // Quota of succeeded pods may be released before the result of their job is known.
    let run = fixture.space.observer().ledger().judge("first", tested.pods()).runs.pop();
    let ended = run.and_then(|run| run.ended()).context("an end of the first run")?;
    let reserved = expect::since(&second, "QuotaReserved")?;
    ensure!(
        ended <= reserved,
        "the first job ran until {ended}, quota was given at {reserved}: {}",
        json!([first.status, second.status])
    );
    Ok(())
}

pub(crate) async fn a_job_fails(tested: KindUnderTest) -> Result<()> {
    let fixture = KindFixture::new("fails", tested).await?;
    fixture.room_on_hub(1).await?;
    let plan = JobPlan { exit_code: 1, ..JobPlan::of("broken", 1) };
    fixture.submit(&plan).await?;
    let failed = |job: &Value| (fixture.tested.succeeded)(job) == Some(false);
    fixture.until_job(fixture.hub(), "broken", "fails", failed).await?;
    let workload = fixture.until_finished("broken").await?;
    let finished = expect::condition(&workload, "Finished").context("a result")?;
    ensure!(finished.reason == "Failed" && !finished.message.is_empty(), "{finished:?}");
    Ok(())
}

/// The templates are the submitted ones again, and a second run has pods of its own.
pub(crate) async fn a_job_is_evicted_and_runs_again(tested: KindUnderTest) -> Result<()> {
    let fixture = KindFixture::new("evicted", tested).await?;
    fixture.room_on_hub(1).await?;
    let (hub, tested) = (fixture.hub(), &fixture.tested);
    let submitted = fixture.submit(&JobPlan::of("train", LONG)).await?;
    let before = tested.templates_of(&submitted);
    let first = uids(&fixture.until_running(hub, "train").await?);
    let workload = fixture.until_workload("train", "is there", |_| true).await?.name_any();

    fixture.activate(&workload, false).await?;
    let released = expect::is_deactivated;
    fixture.until_workload("train", "is evicted and holds nothing", released).await?;
    let restored = |job: &Value| {
        tested.is_suspended(job) && !tested.is_active(job) && tested.templates_of(job) == before
    };
    fixture.until_job(hub, "train", "is suspended, idle and restored", restored).await?;
    fixture.until_without_pods(hub, "train").await?;

    fixture.activate(&workload, true).await?;
    let second = uids(&fixture.until_running(hub, "train").await?);
    ensure!(first.is_disjoint(&second), "pods are kept: {first:?}, {second:?}");
    let again = fixture.until_workload("train", "is admitted again", |one| {
        is_true(&one.status.conditions, "Admitted")
    });
    ensure!(again.await?.name_any() == workload, "the Workload stays");
    Ok(())
}

pub(crate) async fn a_job_is_deleted_while_it_runs(tested: KindUnderTest) -> Result<()> {
    let fixture = KindFixture::new("deleted", tested).await?;
    fixture.room_on_hub(1).await?;
    let hub = fixture.hub();
    fixture.submit(&JobPlan::of("train", LONG)).await?;
    let running = fixture.until_running(hub, "train").await?.len();
    let workload = fixture.until_workload("train", "is there", |_| true).await?.name_any();
    let listed = (fixture.namespace(), &*workload);
    are_listed(&fixture.installation, listed, running).await?;
    fixture.delete(hub, "train").await?;
    hub.until_gone(&fixture.workloads(hub), &workload, 2 * TIMEOUT).await?;
    fixture.until_without_pods(hub, "train").await?;
    // Its quota is free.
    fixture.submit(&JobPlan::of("next", 1)).await?;
    fixture.until_finished("next").await?;
    Ok(())
}

pub(crate) async fn a_job_without_a_queue_name_is_left_alone(tested: KindUnderTest) -> Result<()> {
    let fixture = KindFixture::new("alone", tested).await?;
    let hub = fixture.hub();
    hub.add_nodes(&objects::nodes(fixture.namespace(), 1, "4")).await?;
    fixture.provide(&JobPlan::of("plain", 1)).await?;
    let plain = fixture.create(fixture.tested.job_of(&JobPlan::of("plain", 1))).await?;
    ensure!(!fixture.tested.is_suspended(&plain), "{plain}");
    let templates = fixture.tested.templates_of(&plain);
    let done = fixture.until_succeeded("plain").await?;
    ensure!(fixture.tested.templates_of(&done) == templates, "{done}");
    let workloads = fixture.workloads(hub).list(&Default::default()).await?;
    ensure!(workloads.items.is_empty(), "{:?}", workloads.items);
    fixture.expect("plain", &[RunVerdict::Once]).await
}

/// A Job that a managed job controls, as operators create them: with its labels, and pods from its templates.
pub(crate) async fn a_child_gets_no_workload(tested: KindUnderTest) -> Result<()> {
    let fixture = KindFixture::new("child", tested).await?;
    fixture.room_on_hub(2).await?;
    let hub = fixture.hub();
    fixture.submit(&JobPlan::of("parent", LONG)).await?;
    fixture.until_running(hub, "parent").await?;
    let parent = fixture.until_started(hub, "parent").await?;
    let jobs = hub.api::<Job>(fixture.namespace());
    let child: Job = serde_json::from_value(child_of(&fixture.tested, &parent)?)?;
    let created = jobs.create(&PostParams::default(), &child).await?;
    ensure!(created.spec.context("a spec")?.suspend != Some(true), "it starts with its parent");
    let ran = |job: &Job| job.status.as_ref().is_some_and(|status| status.active == Some(1));
    hub.until(&jobs, "child", "runs", TIMEOUT, ran).await?;
    // A later job of the queue has its Workload, so the manager has seen the child.
    fixture.submit(&JobPlan::of("later", 1)).await?;
    fixture.until_finished("later").await?;
    let all: Vec<Workload> = fixture.workloads(hub).list(&Default::default()).await?.items;
    let owners: BTreeSet<&str> = all
        .iter()
        .flat_map(|one| one.owner_references())
        .map(|owner| owner.name.as_str())
        .collect();
    ensure!(owners == BTreeSet::from(["later", "parent"]), "{owners:?}");
    let child = jobs.get("child").await?;
    ensure!(child.spec.context("a spec")?.suspend != Some(true), "it runs with its parent");
    Ok(())
}

fn child_of(tested: &KindUnderTest, parent: &Value) -> Result<Value> {
    let mut template = tested.templates_of(parent).pop().context("a template")?;
    if tested.needed_by(&JobPlan::of("parent", LONG)).is_some() {
        // The parent has only the additions to the template of another object.
        let mut whole = KindUnderTest::template_of(&JobPlan::of("parent", LONG));
        for field in ["nodeSelector", "tolerations"] {
            whole["spec"][field] = template["spec"][field].clone();
        }
        template = whole;
    }
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        // Of the parent's pods, if it is a Job.
        labels.retain(|label, _| !label.contains("controller-uid") && !label.contains("job-name"));
    }
    Ok(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "child", "labels": parent["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": tested.kind.api_version(), "kind": tested.kind.name(),
                "name": parent["metadata"]["name"], "uid": parent["metadata"]["uid"],
                "controller": true,
            }],
        },
        "spec": {"template": template},
    }))
}

fn uids(pods: &[Pod]) -> BTreeSet<String> {
    pods.iter().filter_map(ResourceExt::uid).collect()
}
