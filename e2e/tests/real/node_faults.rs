//! Nodes whose kubelet is silent. Their containers go on, so their jobs run nowhere else before the containers have ended.

use anyhow::{Result, ensure};
use e2e::installation::TIMEOUT;
use harness::{Cluster, program};
use k8s_openapi::api::core::v1::Node;
use kube::Api;

use crate::fixture::RealFixture;

/// Ends by itself when the file `go` is there.
const WAITS: &str = "trap 'note stopped; exit 143' TERM
note started
until [ -e /diaries/go ]; do sleep 1; done
note ended";

#[tokio::test]
#[ignore = "make test-real"]
async fn a_job_whose_kubelet_was_killed_is_complete_once_it_is_back() -> Result<()> {
    let fixture = RealFixture::open_with_own_nodes("real_kubelet", 1).await?;
    fixture.submit(&fixture.job("train", 1, WAITS)).await?;
    let (_, worker) = fixture.until_placed("train").await?;
    fixture.until_noted(worker, "started", 1).await?;
    let node = fixture.own_node(worker)?;
    node.kill("kubelet")?;
    until_not_ready(worker, node.name()).await?;
    fixture.leave_file("go")?;
    fixture.until_noted(worker, "ended", 1).await?;

    node.start(&program("sluice-lab")?, "kubelet")?;
    fixture.until_ended("train", "Complete").await?;
    fixture.until_no_pod_is_left().await?;
    fixture.ensure_once("train", 1).await?;
    let diary = fixture.diary(worker)?;
    ensure!(diary.only("started")?.pod == diary.only("ended")?.pod, "{diary:?}");
    fixture.ensure_only_on(worker)
}

#[tokio::test]
#[ignore = "make test-real"]
async fn a_job_of_a_cut_off_node_runs_again_when_its_containers_have_ended() -> Result<()> {
    let fixture = RealFixture::open_with_own_nodes("real_cut_off", 2).await?;
    fixture.submit(&fixture.job("train", 1, WAITS)).await?;
    let (_, worker) = fixture.until_placed("train").await?;
    fixture.until_noted(worker, "started", 1).await?;
    let node = fixture.own_node(worker)?;
    node.cut_off()?;
    until_not_ready(worker, node.name()).await?;
    fixture.until_evicted("train", "PodsReadyTimeout").await?;
    let diary = fixture.whole_diary()?;
    ensure!(
        diary.entries("started").len() == 1 && diary.entries("stopped").is_empty(),
        "{diary:?}"
    );

    node.reconnect()?;
    fixture.until_noted(worker, "stopped", 1).await?;
    fixture.leave_file("go")?;
    fixture.until_ended_within("train", "Complete", 3 * TIMEOUT).await?;
    fixture.until_no_pod_is_left().await?;
    let diary = fixture.whole_diary()?;
    let (stopped, ended) = (diary.only("stopped")?, diary.only("ended")?);
    let started = diary.entries("started");
    let again = started.iter().find(|entry| entry.pod == ended.pod);
    ensure!(started.len() == 2, "{diary:?}");
    ensure!(again.is_some_and(|again| again.seconds >= stopped.seconds), "{diary:?}");
    fixture.ensure_moved("train", 1).await
}

async fn until_not_ready(worker: &Cluster, node: &str) -> Result<()> {
    let nodes: Api<Node> = worker.cluster_api();
    let unknown = |node: &Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.type_ == "Ready" && one.status != "True")
    };
    worker.until(&nodes, node, "is not ready", 2 * TIMEOUT, unknown).await?;
    Ok(())
}
