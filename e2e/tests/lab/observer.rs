//! The observer against real pods.

use anyhow::Result;
use e2e::objects::phase;
use harness::annotation::RUN_SECONDS;
use harness::{Component, Fault, FaultProxy, Observer, RunVerdict, secs};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};

use crate::{TIMEOUT, complete, job, lab, pod, submit};

#[tokio::test]
async fn a_second_run_in_another_cluster_is_observed() -> Result<()> {
    let space = lab().await?.space("twice").await?;
    let observer = space.observer();
    assert_eq!(observer.judge("train", 2, TIMEOUT).await?.verdict, RunVerdict::NeverRan);

    submit(&space, 1, &job("train", 2, &[])?).await?;
    observer.until("train", 2, RunVerdict::Once, TIMEOUT).await?;

    submit(&space, 2, &job("train", 2, &[])?).await?;
    let judgement = observer.until("train", 2, RunVerdict::Twice, TIMEOUT).await?;
    let clusters: Vec<&str> = judgement.runs.iter().map(|run| run.cluster.as_str()).collect();
    assert_eq!(clusters, ["worker-1", "worker-2"]);
    Ok(())
}

#[tokio::test]
async fn overlapping_runs_are_observed_while_they_run() -> Result<()> {
    let space = lab().await?.space("overlap").await?;
    let long = job("train", 1, &[(RUN_SECONDS, "600")])?;
    submit(&space, 1, &long).await?;
    space.observer().until("train", 1, RunVerdict::Running, TIMEOUT).await?;
    submit(&space, 2, &long).await?;
    space.observer().until("train", 1, RunVerdict::Twice, TIMEOUT).await?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_job_is_lost_or_moved_if_it_runs_elsewhere() -> Result<()> {
    let space = lab().await?.space("moved").await?;
    submit(&space, 1, &job("train", 1, &[(RUN_SECONDS, "600")])?).await?;
    space.observer().until("train", 1, RunVerdict::Running, TIMEOUT).await?;

    let jobs: Api<Job> = space.worker(1)?.api(space.namespace());
    jobs.delete("train", &DeleteParams::background()).await?;
    space.observer().until("train", 1, RunVerdict::Lost, TIMEOUT).await?;

    submit(&space, 2, &job("train", 1, &[])?).await?;
    space.observer().until("train", 1, RunVerdict::Moved, TIMEOUT).await?;
    Ok(())
}

#[tokio::test]
async fn changes_during_a_cut_watch_are_recorded() -> Result<()> {
    let space = lab().await?.space("watch_cut").await?;
    let worker = space.worker(1)?;
    let proxy = FaultProxy::start(worker).await?;
    let through: Api<Pod> = Api::namespaced(proxy.client().await?, space.namespace());
    let connections = vec![(worker.clone(), through)];
    let observer = Observer::start_with(connections, space.namespace(), TIMEOUT).await?;

    proxy.set(Fault::Refuse);
    let pods: Api<Pod> = worker.api(space.namespace());
    pods.create(&PostParams::default(), &pod("short-lived", &[])?).await?;
    worker
        .until(&pods, "short-lived", "succeeds", TIMEOUT, |pod| phase(pod) == "Succeeded")
        .await?;
    pods.delete("short-lived", &DeleteParams::default()).await?;
    worker.until_gone(&pods, "short-lived", TIMEOUT).await?;
    let blind = observer.catch_up(secs(1)).await;
    assert!(blind.is_err(), "it cannot see through a refused connection");
    assert_eq!(observer.ledger().judge("short-lived", 1).verdict, RunVerdict::NeverRan);

    proxy.set(Fault::None);
    let judgement = observer.judge("short-lived", 1, TIMEOUT).await?;
    assert_eq!(judgement.verdict, RunVerdict::Once, "{judgement}");
    Ok(())
}

/// A new API server has no history, so the watch has to list again.
#[tokio::test]
async fn unseen_pods_make_the_verdict_unclear() -> Result<()> {
    let space = lab().await?.space_alone("unseen").await?;
    let worker = space.worker(2)?;
    let proxy = FaultProxy::start(worker).await?;
    let through: Api<Pod> = Api::namespaced(proxy.client().await?, space.namespace());
    let connections = vec![(worker.clone(), through)];
    let observer = Observer::start_with(connections, space.namespace(), TIMEOUT).await?;

    proxy.set(Fault::Refuse);
    let pods: Api<Pod> = worker.api(space.namespace());
    pods.create(&PostParams::default(), &pod("short-lived", &[])?).await?;
    worker
        .until(&pods, "short-lived", "succeeds", TIMEOUT, |pod| phase(pod) == "Succeeded")
        .await?;
    pods.delete("short-lived", &DeleteParams::default()).await?;
    worker.until_gone(&pods, "short-lived", TIMEOUT).await?;
    worker.restart(Component::ApiServer).await?;
    proxy.set(Fault::None);

    let judgement = observer.judge("short-lived", 1, TIMEOUT).await?;
    assert_eq!(judgement.verdict, RunVerdict::Unclear, "{judgement}");
    assert_eq!(judgement.unseen, ["worker-2/short-lived"]);
    assert_eq!(observer.judge("other", 1, TIMEOUT).await?.verdict, RunVerdict::NeverRan);
    Ok(())
}

#[tokio::test]
async fn suspending_a_job_ends_its_pods_without_doing_its_work() -> Result<()> {
    let space = lab().await?.space("suspend").await?;
    let worker = space.worker(1)?;
    submit(&space, 1, &job("train", 1, &[(RUN_SECONDS, "600")])?).await?;
    space.observer().until("train", 1, RunVerdict::Running, TIMEOUT).await?;

    worker
        .kubectl(&[
            "-n",
            space.namespace(),
            "patch",
            "job",
            "train",
            "--patch",
            r#"{"spec":{"suspend":true}}"#,
        ])
        .await?;
    space.observer().until("train", 1, RunVerdict::Lost, TIMEOUT).await?;
    let jobs: Api<Job> = worker.api(space.namespace());
    let suspended =
        worker.until(&jobs, "train", "is suspended", TIMEOUT, |job| !complete(job)).await?;
    assert_eq!(suspended.spec.and_then(|spec| spec.suspend), Some(true));
    Ok(())
}
