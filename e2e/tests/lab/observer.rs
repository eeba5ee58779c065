//! The observer against real pods.

use anyhow::Result;
use harness::annotation::RUN_SECONDS;
use harness::{Component, Fault, FaultProxy, Observer, Verdict, secs};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};

use crate::{SOON, complete, job, lab, phase, pod, submit};

#[tokio::test]
async fn it_sees_one_run_and_then_a_second_one_in_another_cluster() -> Result<()> {
    let space = lab().await?.space("twice").await?;
    let observer = space.observer();
    assert_eq!(observer.judge("train", 2, SOON).await?.verdict, Verdict::NeverRan);

    submit(&space, 1, &job("train", 2, &[])?).await?;
    observer.until("train", 2, Verdict::Once, SOON).await?;

    submit(&space, 2, &job("train", 2, &[])?).await?;
    let judgement = observer.until("train", 2, Verdict::Twice, SOON).await?;
    let clusters: Vec<&str> = judgement.runs.iter().map(|run| run.cluster.as_str()).collect();
    assert_eq!(clusters, ["worker-1", "worker-2"]);
    Ok(())
}

#[tokio::test]
async fn two_runs_at_the_same_time_are_seen_while_they_run() -> Result<()> {
    let space = lab().await?.space("overlap").await?;
    let long = job("train", 1, &[(RUN_SECONDS, "600")])?;
    submit(&space, 1, &long).await?;
    space.observer().until("train", 1, Verdict::Running, SOON).await?;
    submit(&space, 2, &long).await?;
    space.observer().until("train", 1, Verdict::Twice, SOON).await?;
    Ok(())
}

#[tokio::test]
async fn a_job_deleted_while_it_ran_is_lost_and_run_elsewhere_it_has_moved() -> Result<()> {
    let space = lab().await?.space("moved").await?;
    submit(&space, 1, &job("train", 1, &[(RUN_SECONDS, "600")])?).await?;
    space.observer().until("train", 1, Verdict::Running, SOON).await?;

    let jobs: Api<Job> = space.worker(1)?.api(space.namespace());
    jobs.delete("train", &DeleteParams::background()).await?;
    space.observer().until("train", 1, Verdict::Lost, SOON).await?;

    submit(&space, 2, &job("train", 1, &[])?).await?;
    space.observer().until("train", 1, Verdict::Moved, SOON).await?;
    Ok(())
}

#[tokio::test]
async fn what_happened_while_its_watch_was_cut_is_in_the_books() -> Result<()> {
    let space = lab().await?.space("watch_cut").await?;
    let worker = space.worker(1)?;
    let proxy = FaultProxy::start(worker).await?;
    let through: Api<Pod> = Api::namespaced(proxy.client().await?, space.namespace());
    let connections = vec![(worker.clone(), through)];
    let observer = Observer::start_with(connections, space.namespace(), SOON).await?;

    proxy.set(Fault::Refuse);
    let pods: Api<Pod> = worker.api(space.namespace());
    pods.create(&PostParams::default(), &pod("short-lived", &[])?).await?;
    worker.until(&pods, "short-lived", "succeeds", SOON, |pod| phase(pod) == "Succeeded").await?;
    pods.delete("short-lived", &DeleteParams::default()).await?;
    worker.until_gone(&pods, "short-lived", SOON).await?;
    let blind = observer.catch_up(secs(1)).await;
    assert!(blind.is_err(), "it cannot see through a refused connection");
    assert_eq!(observer.ledger().judge("short-lived", 1).verdict, Verdict::NeverRan);

    proxy.set(Fault::None);
    let judgement = observer.judge("short-lived", 1, SOON).await?;
    assert_eq!(judgement.verdict, Verdict::Once, "{judgement}");
    Ok(())
}

/// A new API server doesn't remember what was before it, so the watch has lost its place.
#[tokio::test]
async fn what_came_and_went_unseen_leaves_the_verdict_open() -> Result<()> {
    let space = lab().await?.space_alone("unseen").await?;
    let worker = space.worker(2)?;
    let proxy = FaultProxy::start(worker).await?;
    let through: Api<Pod> = Api::namespaced(proxy.client().await?, space.namespace());
    let connections = vec![(worker.clone(), through)];
    let observer = Observer::start_with(connections, space.namespace(), SOON).await?;

    proxy.set(Fault::Refuse);
    let pods: Api<Pod> = worker.api(space.namespace());
    pods.create(&PostParams::default(), &pod("short-lived", &[])?).await?;
    worker.until(&pods, "short-lived", "succeeds", SOON, |pod| phase(pod) == "Succeeded").await?;
    pods.delete("short-lived", &DeleteParams::default()).await?;
    worker.until_gone(&pods, "short-lived", SOON).await?;
    worker.restart(Component::ApiServer).await?;
    proxy.set(Fault::None);

    let judgement = observer.judge("short-lived", 1, SOON).await?;
    assert_eq!(judgement.verdict, Verdict::Unclear, "{judgement}");
    assert_eq!(judgement.unseen, ["worker-2/short-lived"]);
    assert_eq!(observer.judge("other", 1, SOON).await?.verdict, Verdict::NeverRan);
    Ok(())
}

#[tokio::test]
async fn suspending_a_job_ends_its_pods_without_doing_its_work() -> Result<()> {
    let space = lab().await?.space("suspend").await?;
    let worker = space.worker(1)?;
    submit(&space, 1, &job("train", 1, &[(RUN_SECONDS, "600")])?).await?;
    space.observer().until("train", 1, Verdict::Running, SOON).await?;

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
    space.observer().until("train", 1, Verdict::Lost, SOON).await?;
    let jobs: Api<Job> = worker.api(space.namespace());
    let suspended =
        worker.until(&jobs, "train", "is suspended", SOON, |job| !complete(job)).await?;
    assert_eq!(suspended.spec.and_then(|spec| spec.suspend), Some(true));
    Ok(())
}
