//! A job that is placed again goes to the worker with its checkpoint (docs/reference/dispatch.md §3).

use anyhow::{Result, ensure};
use crds::{meta::annotation, v1beta2::Workload};
use k8s_openapi::api::core::v1::Node;
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, holds, said, with_annotation},
    objects,
};

/// A Job of two pods without an end. It runs on the second worker, and the first one has room from then on.
async fn on_second_worker(fixture: &DispatchFixture, checkpoint: &str) -> Result<String> {
    fixture.nodes(2, 1, "2").await?;
    fixture.ordered_queue("40").await?;
    fixture.submit(&training(checkpoint)).await?;
    fixture.until_running("train", 2, 2).await?;
    fixture.until_free(2, 0).await?;
    fixture.nodes(1, 1, "20").await?;
    fixture.until_free(1, 20).await?;
    let admitted = |one: &Workload| holds(one, "Admitted");
    Ok(fixture.until_workload("train", "is admitted", admitted).await?.name_any())
}

fn training(checkpoint: &str) -> Value {
    let job = objects::job("train", 2, "1", objects::LONG);
    with_annotation(job, "sluice.dev/checkpoint", checkpoint)
}

/// Evicts the Workload, which then waits until it is activated. The manager knew that the second worker was full, and knows then that
/// it is empty.
async fn deactivate(fixture: &DispatchFixture, workload: &str) -> Result<()> {
    fixture.change::<Workload>(workload, &json!({"spec": {"active": false}})).await?;
    let idle = |one: &Workload| one.status.admission.is_none() && holds(one, "Evicted");
    let idle = fixture.until_workload("train", "holds nothing", idle).await?;
    let last = annotation(&idle.metadata, "sluice.dev/last-cluster");
    ensure!(last == Some("worker-2"), "{:?}", idle.metadata);
    fixture.until_free(2, 2).await
}

async fn activate(fixture: &DispatchFixture, workload: &str) -> Result<()> {
    fixture.change::<Workload>(workload, &json!({"spec": {"active": true}})).await
}

/// A Job without a checkpoint runs on the first worker while the second one is empty: the first one ranks better.
async fn first_worker_ranks_better(fixture: &DispatchFixture) -> Result<()> {
    fixture.submit(&objects::job("other", 1, "1", objects::LONG)).await?;
    fixture.until_running("other", 1, 1).await
}

/// Makes the nodes of this test on the second worker unschedulable.
async fn cordon(fixture: &DispatchFixture) -> Result<()> {
    set_unschedulable(fixture, true).await?;
    fixture.until_free(2, 0).await
}

async fn set_unschedulable(fixture: &DispatchFixture, unschedulable: bool) -> Result<()> {
    let nodes = fixture.worker(2).cluster_api::<Node>();
    let own = ListParams::default().labels(&format!("{}={}", objects::OWN, fixture.namespace()));
    let patch = Patch::Merge(json!({"spec": {"unschedulable": unschedulable}}));
    for node in nodes.list(&own).await? {
        nodes.patch(&node.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

/// An evicted Job returns to the second worker, although the first one ranks better. Then it is evicted again, and the second worker
/// has no room when it is activated.
async fn returns_and_loses_its_room(fixture: &DispatchFixture, checkpoint: &str) -> Result<()> {
    let workload = on_second_worker(fixture, checkpoint).await?;
    deactivate(fixture, &workload).await?;
    first_worker_ranks_better(fixture).await?;
    activate(fixture, &workload).await?;
    fixture.until_running("train", 2, 2).await?;
    fixture.until_free(2, 0).await?;

    deactivate(fixture, &workload).await?;
    cordon(fixture).await?;
    activate(fixture, &workload).await
}

#[tokio::test]
async fn a_job_that_requires_its_checkpoint_waits_for_the_worker_that_holds_it() -> Result<()> {
    let fixture = DispatchFixture::shared("checkpoint_required").await?;
    returns_and_loses_its_room(&fixture, "required").await?;
    let elsewhere = "worker-1: the checkpoint that its job requires is on worker-2";
    let waits = |one: &Workload| {
        said(&one.status.conditions, "QuotaReserved").is_some_and(|said| {
            said.message.starts_with("no cluster has room: worker-2: never fits: pod set main: ")
                && said.message.contains(elsewhere)
        })
    };
    fixture.until_workload("train", "names the worker that it waits for", waits).await?;
    let (_, text) = fixture.sluicectl(&["explain", "train", "-n", fixture.namespace()]).await?;
    ensure!(text.contains("the checkpoint that its job requires is on worker-2"), "{text}");
    set_unschedulable(&fixture, false).await?;
    fixture.until_running("train", 2, 2).await?;
    end(&fixture).await
}

#[tokio::test]
async fn a_job_that_prefers_its_checkpoint_moves_when_its_worker_has_no_room() -> Result<()> {
    let fixture = DispatchFixture::shared("checkpoint_preferred").await?;
    returns_and_loses_its_room(&fixture, "preferred").await?;
    fixture.until_running("train", 2, 1).await?;
    end(&fixture).await
}

/// Both Jobs end.
async fn end(fixture: &DispatchFixture) -> Result<()> {
    let other = fixture.until_complete("other", 2 * e2e::installation::TIMEOUT);
    let workers = &fixture.installation.workers;
    e2e::waits::while_pods_end(workers, (fixture.namespace(), "other"), other).await?;
    fixture.expect_once_when_ended("train", 2).await
}
