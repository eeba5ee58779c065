//! What many tests wait for.

use std::{convert::Infallible, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::{
    meta::{self, Condition},
    names::{LEADER_LEASE, conditions::PODS_FAILING},
    v1beta2::Workload,
};
use futures::future::select_all;
use harness::{Cluster, Follow, Judgement, Observer, RunVerdict, annotation};
use k8s_openapi::api::{
    batch::v1::{Job, JobCondition},
    coordination::v1::Lease,
    core::v1::Pod,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    installation::{NAMESPACE, TIMEOUT},
    objects,
};

/// The status of an answer about an object that is gone.
const NOT_FOUND: u16 = 404;

/// Waits until this holds for the Workload of a job. `what` completes "the Workload of JOB …".
///
/// # Errors
/// If it does not hold in time.
pub async fn until_workload(
    (cluster, namespace): (&Cluster, &str),
    (job, what): (&str, &str),
    within: Duration,
    condition: impl Fn(&Workload) -> bool,
) -> Result<Workload> {
    let of_job = |one: &&Workload| one.owner_references().iter().any(|owner| owner.name == job);
    let found = |all: &[Workload]| all.iter().find(of_job).is_some_and(&condition);
    let what = format!("the Workload of {job} {what}");
    let all = cluster.until_all(&cluster.api(namespace), "", &what, within, found).await?;
    all.iter().find(of_job).cloned().with_context(|| format!("no Workload of {job}"))
}

/// The condition about pods that cannot start, if it is true for one of these reasons.
#[must_use]
pub fn pods_failing<'a>(workload: &'a Workload, reasons: &[&str]) -> Option<&'a Condition> {
    let condition = meta::find(&workload.status.conditions, PODS_FAILING)?;
    let is_shown = condition.status == "True" && reasons.contains(&&*condition.reason);
    is_shown.then_some(condition)
}

/// A Job, once it has the condition with which it ends, and the condition.
///
/// # Errors
/// If it has not in time.
pub async fn until_job_ended(
    (cluster, namespace): (&Cluster, &str),
    (job, end): (&str, &str),
    within: Duration,
) -> Result<(Job, JobCondition)> {
    let ended = |job: &Job| objects::job_is(job, end);
    let what = format!("is {end}");
    let ended = cluster.until(&cluster.api(namespace), job, &what, within, ended).await?;
    let condition = objects::job_condition(&ended, end).cloned();
    let condition = condition.with_context(|| format!("{job} has no condition {end}"))?;
    Ok((ended, condition))
}

/// The first of these clusters where this holds for the pods in a namespace that have these labels.
///
/// # Errors
/// If a cluster cannot be watched, or if it holds on none in time.
pub async fn until_pods_on_any<'a>(
    clusters: &'a [Cluster],
    (namespace, labels, what): (&str, &str, &str),
    within: Duration,
    condition: impl Fn(&[Pod]) -> bool,
) -> Result<&'a Cluster> {
    let condition = &condition;
    let waits = clusters.iter().map(|cluster| {
        Box::pin(async move {
            let pods: Api<Pod> = cluster.api(namespace);
            cluster.until_all(&pods, labels, what, within, condition).await?;
            Ok(cluster)
        })
    });
    select_all(waits).await.0
}

/// What the observer saw of a job that needs so many succeeded pods: one of these verdicts.
///
/// # Errors
/// If its verdict is another one, or it does not catch up.
pub async fn ensure_verdict(
    observer: &Observer,
    (job, work): (&str, usize),
    verdicts: &[RunVerdict],
) -> Result<Judgement> {
    let judgement = observer.judge(job, work, TIMEOUT).await?;
    ensure!(verdicts.contains(&judgement.verdict), "{judgement}");
    Ok(judgement)
}

/// The observer saw a pod without an owner run once, on one worker; `work` is 0 if it failed.
///
/// # Errors
/// If its verdict is another one, or it does not catch up.
pub async fn ensure_pod_once(observer: &Observer, pod: &str, work: usize) -> Result<Judgement> {
    let judgement = observer.judge_pod(pod, work, TIMEOUT).await?;
    ensure!(judgement.verdict == RunVerdict::Once, "{judgement}");
    Ok(judgement)
}

/// Waits until a cluster has no pod in a namespace.
///
/// # Errors
/// If it has one when the time is over.
pub async fn until_no_pod_is_left(
    cluster: &Cluster,
    namespace: &str,
    within: Duration,
) -> Result<()> {
    let pods: Api<Pod> = cluster.api(namespace);
    cluster.until_all(&pods, "", "no pod is left", within, <[Pod]>::is_empty).await?;
    Ok(())
}

/// Waits until a cluster has no Job and then no clone in a namespace, each for so long.
///
/// # Errors
/// If it has one when the time is over.
pub async fn until_no_job_is_left(
    cluster: &Cluster,
    namespace: &str,
    within: Duration,
) -> Result<()> {
    let jobs: Api<Job> = cluster.api(namespace);
    cluster.until_all(&jobs, "", "no job is left", within, <[Job]>::is_empty).await?;
    let clones: Api<Workload> = cluster.api(namespace);
    cluster.until_all(&clones, "", "no clone is left", within, <[Workload]>::is_empty).await?;
    Ok(())
}

/// Waits until another process than `before` leads. Returns its identity.
///
/// # Errors
/// If none does in time.
pub async fn until_led_by_another(hub: &Cluster, before: &str, within: Duration) -> Result<String> {
    let leases: Api<Lease> = hub.api(NAMESPACE);
    let other = |lease: &Lease| ![before, ""].contains(&holder(lease));
    let lease = hub.until(&leases, LEADER_LEASE, "has another holder", within, other).await?;
    Ok(holder(&lease).to_owned())
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// Waits for `outcome` while the pods of a job on these clusters end, each soon after its start or when it is seen.
///
/// Pods that run without an end until then are still running when a test looks at them, however slow the machine is.
///
/// # Errors
/// Those of `outcome`, and a refused change of a pod.
pub async fn while_pods_end<T>(
    clusters: &[Cluster],
    (namespace, job): (&str, &str),
    outcome: impl Future<Output = Result<T>>,
) -> Result<T> {
    let ends = clusters.iter().map(|cluster| Box::pin(end_pods(cluster.api(namespace), job)));
    tokio::select! {
        outcome = outcome => outcome,
        (failed, ..) = select_all(ends) => match failed? {},
    }
}

/// Lets every pod of a job end.
async fn end_pods(pods: Api<Pod>, job: &str) -> Result<Infallible> {
    let ends = json!({"metadata": {"annotations": {annotation::RUN_SECONDS: "1"}}});
    let mut changes = Follow::new(pods.clone());
    loop {
        for pod in changes.next().await.present() {
            let of_job = pod.owner_references().iter().any(|owner| owner.name == job);
            let set = pod.annotations().get(annotation::RUN_SECONDS).is_some_and(|set| set == "1");
            if !of_job || set {
                continue;
            }
            let patch = Patch::Merge(&ends);
            match pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await {
                Err(kube::Error::Api(status)) if status.code == NOT_FOUND => {}
                answer => drop(answer.context("let a pod end")?),
            }
        }
    }
}
