//! One run of a scenario.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use crds::meta::is_true;
use crds::names::conditions::FINISHED;
use crds::v1beta2::Workload;
use harness::{Cluster, Follow, secs};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PropagationPolicy};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use super::observation::ObservedJob;
use super::scenario::{Scenario, ScenarioJob};
use crate::environment::{BenchEnvironment, NAME};
use crate::sample_job::SampleJob;

/// Far above any makespan.
const WITHIN: Duration = secs(1200);

/// A declared run time is an upper bound: late pods must not deactivate their Workload.
const SLACK: u32 = 30;

/// After a run: until all objects of it are gone.
const CLEANED: Duration = secs(120);

/// What one run gave.
pub(super) struct BalanceRun {
    pub(super) makespan: f64,
    pub(super) mean_wait: f64,
    /// Jobs with a pod that its cluster could not bind.
    pub(super) unbindable: usize,
    /// Jobs of which the pods never all ran at once.
    pub(super) never_whole: usize,
    pub(super) clones_per_job: f64,
    pub(super) begun: Instant,
    pub(super) jobs: Vec<(ScenarioJob, ObservedJob)>,
}

type Book = watch::Sender<BTreeMap<String, ObservedJob>>;

/// Submits the jobs at their times and follows them to their ends. `declared`: with run times.
pub(super) async fn play(
    field: &BenchEnvironment<'_>,
    scenario: &Scenario,
    seed: u64,
    declared: bool,
) -> Result<BalanceRun> {
    let book: Book = watch::Sender::default();
    let watches = follow_all(field, &book);
    let begun = Instant::now();
    let arrivals = scenario.arrivals(seed);
    for (at, job) in &arrivals {
        sleep_until((begun + *at).into()).await;
        submit(field, &book, job, declared).await?;
    }
    let mut ends = book.subscribe();
    let complete = |all: &BTreeMap<String, ObservedJob>| {
        arrivals.iter().all(|(_, job)| all.get(&job.name).is_some_and(|one| one.complete.is_some()))
    };
    let ended = timeout(WITHIN, ends.wait_for(complete)).await;
    let observed = match ended {
        Ok(Ok(all)) => all.clone(),
        _ => {
            let open = open_workloads(field).await?;
            return Err(anyhow!("not all jobs end within {WITHIN:?}: {}", open.join("; ")));
        }
    };
    drop(watches);
    clean(field).await?;
    result(begun, scenario, &observed)
}

/// Workloads without an end, with the reasons of their conditions.
async fn open_workloads(field: &BenchEnvironment<'_>) -> Result<Vec<String>> {
    let workloads = field.installation.hub.api::<Workload>(NAME);
    let all = workloads.list(&ListParams::default()).await?;
    let open = all.iter().filter(|one| !is_true(&one.status.conditions, FINISHED));
    let described = open.map(|one| {
        let conditions = one.status.conditions.iter();
        let conditions: Vec<String> = conditions
            .map(|one| format!("{}={} {} {:?}", one.r#type, one.status, one.reason, one.message))
            .collect();
        format!("{} on {:?}: {}", one.name_any(), one.status.cluster_name, conditions.join(", "))
    });
    Ok(described.collect())
}

async fn submit(
    field: &BenchEnvironment<'_>,
    book: &Book,
    job: &ScenarioJob,
    declared: bool,
) -> Result<()> {
    let gpus = job.gpu_per_pod;
    let longest = (job.run_s + SLACK).to_string();
    let object = SampleJob {
        name: &job.name,
        run_seconds: job.run_s,
        pods: job.pods,
        requests: json!({"cpu": gpus.to_string(), "nvidia.com/gpu": gpus.to_string()}),
        labels: if declared {
            json!({"kueue.x-k8s.io/max-exec-time-seconds": longest})
        } else {
            json!({})
        },
    };
    let now = Instant::now();
    book.send_modify(|all| all.entry(job.name.clone()).or_default().submitted = Some(now));
    object.submit(&field.installation.hub).await
}

fn follow_all(field: &BenchEnvironment<'_>, book: &Book) -> JoinSet<()> {
    let mut watches = JoinSet::new();
    let hub = &field.installation.hub;
    watches.spawn(follow(hub.clone(), book.clone(), |job: &Job| Some(job.name_any()), {
        |_, one, job, now| one.observe_job(job, now)
    }));
    for worker in &field.installation.workers {
        watches.spawn(follow(
            worker.clone(),
            book.clone(),
            job_of_pod,
            |cluster, one, pod, now| {
                one.observe_pod(cluster, pod, now);
            },
        ));
        watches.spawn(follow(worker.clone(), book.clone(), job_of_clone, |cluster, one, _, _| {
            one.observe_clone(cluster);
        }));
    }
    watches
}

fn job_of_pod(pod: &Pod) -> Option<String> {
    pod.labels().get("batch.kubernetes.io/job-name").cloned()
}

/// A clone has the name of the manager's Workload: `job-`, the job's name, a hash.
fn job_of_clone(clone: &Workload) -> Option<String> {
    let name = clone.name_any();
    let name = name.strip_prefix("job-")?;
    Some(name.rsplit_once('-')?.0.to_owned())
}

async fn follow<K>(
    cluster: Cluster,
    book: Book,
    job: fn(&K) -> Option<String>,
    see: fn(&str, &mut ObservedJob, &K, Instant),
) where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static,
{
    let mut follow = Follow::new(cluster.api::<K>(NAME));
    loop {
        let objects = follow.next().await.present();
        let now = Instant::now();
        for object in &objects {
            if let Some(name) = job(object) {
                book.send_modify(|all| {
                    // An object of an earlier run is not part of this one.
                    if let Some(one) = all.get_mut(&name) {
                        see(cluster.name(), one, object, now);
                    }
                });
            }
        }
    }
}

async fn clean(field: &BenchEnvironment<'_>) -> Result<()> {
    let hub = &field.installation.hub;
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    hub.api::<Job>(NAME).delete_collection(&params, &ListParams::default()).await?;
    for cluster in field.clusters() {
        let (jobs, workloads) = (cluster.api::<Job>(NAME), cluster.api::<Workload>(NAME));
        cluster.until_all(&jobs, "", "no Job is left", CLEANED, <[Job]>::is_empty).await?;
        let is_empty = <[Workload]>::is_empty;
        cluster.until_all(&workloads, "", "no Workload is left", CLEANED, is_empty).await?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "some hundred jobs")]
fn result(
    begun: Instant,
    scenario: &Scenario,
    observed: &BTreeMap<String, ObservedJob>,
) -> Result<BalanceRun> {
    let of = |job: &ScenarioJob| observed.get(&job.name).cloned().unwrap_or_default();
    let jobs: Vec<_> = scenario.jobs.iter().map(|job| (job.clone(), of(job))).collect();
    let count = jobs.len() as f64;
    let mut wait = Duration::ZERO;
    for (job, one) in &jobs {
        wait += one.wait(job.pods).with_context(|| format!("no pod of {} ran", job.name))?;
    }
    let last = jobs.iter().filter_map(|(_, one)| one.complete).max().unwrap_or(begun);
    let clones: usize = jobs.iter().map(|(_, one)| one.clones()).sum();
    Ok(BalanceRun {
        makespan: last.saturating_duration_since(begun).as_secs_f64(),
        mean_wait: wait.as_secs_f64() / count,
        unbindable: jobs.iter().filter(|(_, one)| one.is_unbindable).count(),
        never_whole: jobs.iter().filter(|(job, one)| one.whole(job.pods).is_none()).count(),
        clones_per_job: clones as f64 / count,
        begun,
        jobs,
    })
}
