//! What is tested on any manager with two workers (`e2e::cluster_cases`), on played nodes.

use anyhow::{Result, ensure};
use e2e::cluster_cases::{CaseNodes, CasePlace, ClusterCase};

use crate::shared_installation::SharedInstallation;

async fn on_played_nodes(case: ClusterCase) -> Result<()> {
    ensure!(CaseNodes::Played.lack(case).is_none(), "{case:?} is not for played nodes");
    let installation = SharedInstallation::get().await?.installation().await?;
    let space = installation.lab.space(case.name()).await?;
    let place = CasePlace {
        hub: &installation.hub,
        workers: &installation.workers,
        namespace: space.namespace(),
        observer: space.observer(),
        nodes: CaseNodes::Played,
    };
    case.run(&place).await
}

#[tokio::test]
async fn a_job_succeeds_and_its_status_comes_back() -> Result<()> {
    on_played_nodes(ClusterCase::Succeeds).await
}

#[tokio::test]
async fn a_job_fails_and_its_exit_code_comes_back() -> Result<()> {
    on_played_nodes(ClusterCase::Fails).await
}

#[tokio::test]
async fn a_group_of_pods_runs_on_one_worker() -> Result<()> {
    on_played_nodes(ClusterCase::PodGroup).await
}

#[tokio::test]
async fn a_job_of_a_higher_priority_takes_the_place_of_another_one() -> Result<()> {
    on_played_nodes(ClusterCase::Preemption).await
}

#[tokio::test]
async fn a_job_that_is_deleted_while_it_runs_leaves_nothing() -> Result<()> {
    on_played_nodes(ClusterCase::Deletion).await
}

#[tokio::test]
async fn the_job_of_a_drained_worker_moves_to_the_other_one() -> Result<()> {
    on_played_nodes(ClusterCase::Drain).await
}

#[tokio::test]
async fn single_pods_end_and_their_exit_codes_come_back() -> Result<()> {
    on_played_nodes(ClusterCase::SinglePods).await
}

#[tokio::test]
async fn a_job_runs_on_the_larger_worker_because_only_it_has_room() -> Result<()> {
    on_played_nodes(ClusterCase::Room).await
}

#[test]
fn every_other_case_says_why_it_needs_a_kubelet() {
    let skipped = ClusterCase::ALL.map(|case| CaseNodes::Played.lack(case));
    let reasons = skipped.into_iter().flatten().collect::<Vec<_>>();
    // The tests above are the others.
    assert_eq!(ClusterCase::ALL.len() - reasons.len(), 8, "{reasons:?}");
}
