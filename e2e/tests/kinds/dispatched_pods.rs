//! Pods that run on a worker: the pods of the manager cluster stay gated and show the status of their copies.

use anyhow::{Result, ensure};
use crds::{names::gates::ADMISSION, v1beta2::Workload};
use e2e::{
    installation::TIMEOUT,
    listed_pods::are_listed,
    objects::{LONG, phase},
    waits,
};
use harness::Cluster;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::DeleteParams};

use crate::{
    pods::{PodsFixture, has_finalizer, is, is_gated, member, pod},
    shared_installation::SharedInstallation,
};

/// Long enough to be caught running.
const A_WHILE: u32 = 6;

async fn until_nothing_is_left(fixture: &PodsFixture, worker: &Cluster) -> Result<()> {
    let namespace = fixture.space.namespace();
    waits::until_no_pod_is_left(worker, namespace, 2 * TIMEOUT).await?;
    let clones: Api<Workload> = worker.api(namespace);
    worker.until_all(&clones, "", "no clone is left", TIMEOUT, <[Workload]>::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn a_pod_runs_on_a_worker_and_stays_gated_at_home() -> Result<()> {
    let (fixture, worker) = PodsFixture::dispatched("dispatched_pod", "1").await?;
    fixture.create(&pod("train", A_WHILE)).await?;
    let copies: Api<Pod> = worker.api(fixture.space.namespace());
    let runs = |pod: &Pod| !is_gated(pod) && phase(pod) == "Running";
    worker.until(&copies, "train", "runs", 2 * TIMEOUT, runs).await?;
    let shows = |pod: &Pod| phase(pod) == "Running";
    let home = fixture.until("train", "shows its copy", shows).await?;
    ensure!(is_gated(&home), "{ADMISSION} keeps it from a node: {:?}", home.spec);
    fixture.until("train", "shows the end", |pod| phase(pod) == "Succeeded").await?;
    fixture.until("train", "is not kept", |pod| !has_finalizer(pod)).await?;
    until_nothing_is_left(&fixture, &worker).await?;
    fixture.until_quota_is_free().await
}

#[tokio::test]
async fn a_group_of_pods_runs_on_one_worker() -> Result<()> {
    let (fixture, worker) = PodsFixture::dispatched("dispatched_group", "2").await?;
    for name in ["a", "b"] {
        fixture.create(&member(name, 2, A_WHILE)).await?;
    }
    let copies: Api<Pod> = worker.api(fixture.space.namespace());
    let run = |all: &[Pod]| all.len() == 2 && all.iter().all(|pod| phase(pod) == "Running");
    worker.until_all(&copies, "", "both run", 2 * TIMEOUT, run).await?;
    let finished = |one: &Workload| is(one, "Finished");
    let workload = fixture.until_workload("team", "is finished", finished).await?;
    ensure!(workload.status.cluster_name.as_deref() == Some("worker-1"), "{:?}", workload.status);
    for name in ["a", "b"] {
        let home = fixture.until(name, "is not kept", |pod| !has_finalizer(pod)).await?;
        ensure!(is_gated(&home) && phase(&home) == "Succeeded", "{home:?}");
    }
    until_nothing_is_left(&fixture, &worker).await?;
    fixture.until_quota_is_free().await
}

/// The group waits for another member, as it does in one cluster. The finalizer of the deleted one shows that.
#[tokio::test]
async fn a_deleted_member_ends_on_its_worker_and_another_one_takes_its_place_there() -> Result<()> {
    let (fixture, worker) = PodsFixture::dispatched("deleted_member", "2").await?;
    for name in ["a", "b"] {
        fixture.create(&member(name, 2, LONG)).await?;
    }
    let copies: Api<Pod> = worker.api(fixture.space.namespace());
    let run = |all: &[Pod]| all.len() == 2 && all.iter().all(|pod| phase(pod) == "Running");
    worker.until_all(&copies, "", "both run", 2 * TIMEOUT, run).await?;
    fixture.until("b", "shows its copy", |pod| phase(pod) == "Running").await?;
    let installation = SharedInstallation::get().await?.installation().await?;
    are_listed(&installation, (fixture.space.namespace(), "team"), 2).await?;

    fixture.pods().delete("a", &DeleteParams::default()).await?;
    worker.until_gone(&copies, "a", TIMEOUT).await?;
    let waits = |one: &Workload| is(one, "WaitingForReplacementPods");
    fixture.until_workload("team", "waits for a member", waits).await?;
    let kept = fixture.pods().get("a").await?;
    ensure!(has_finalizer(&kept), "it has no successor: {kept:?}");

    fixture.create(&member("c", 2, LONG)).await?;
    let runs = |pod: &Pod| phase(pod) == "Running";
    worker.until(&copies, "c", "runs", TIMEOUT, runs).await?;
    fixture.hub.until_gone(&fixture.pods(), "a", TIMEOUT).await?;
    ensure!(phase(&copies.get("b").await?) == "Running", "it goes on");

    // Without its Workload the group ends.
    fixture.workloads().delete("team", &DeleteParams::default()).await?;
    until_nothing_is_left(&fixture, &worker).await?;
    for name in ["b", "c"] {
        fixture.hub.until_gone(&fixture.pods(), name, TIMEOUT).await?;
    }
    fixture.until_quota_is_free().await
}
