//! The submitted work. A request without an answer, or one that no webhook answered, is sent again, as clients do.

use std::{
    fmt::Debug,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use crds::{meta::is_true, names::conditions::FINISHED, v1beta2::Workload};
use futures::{StreamExt, TryStreamExt, stream};
use harness::{Cluster, secs};
use k8s_openapi::{NamespaceResourceScope, api::batch::v1::Job, api::core::v1::Pod};
use kube::{Api, Resource, ResourceExt, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::quota::{GROUP, JOBS, PODS};
use crate::objects::{self, LONG};

/// Requests in flight. More than are due while the API server hangs.
const AT_A_TIME: usize = 64;

/// Before a request is sent again.
const SEND_AGAIN: Duration = Duration::from_millis(200);

/// Sent requests per object before the run fails.
const TRIES: usize = 300;

/// For the end of everything that was submitted.
const WITHIN: Duration = secs(240);

/// Names of what was submitted.
pub(super) struct SubmittedWork {
    /// Jobs and pods.
    pub(super) names: Vec<String>,
    /// Members of the group.
    pub(super) members: Vec<String>,
}

/// The Jobs and pods of a run, and what submits them.
pub(super) struct JobsAndPods<'a> {
    hub: &'a Cluster,
    namespace: &'a str,
    sent_again: AtomicUsize,
}

impl<'a> JobsAndPods<'a> {
    pub(super) fn new(hub: &'a Cluster, namespace: &'a str) -> Self {
        Self { hub, namespace, sent_again: AtomicUsize::new(0) }
    }

    /// Submits a Job and a pod at a time, so many of each per minute. Returns the names.
    pub(super) async fn steadily(&self, per_minute: u32, lasts: Duration) -> Result<Vec<String>> {
        let (begun, gap) = (Instant::now(), secs(60) / per_minute);
        let pairs = u32::try_from(lasts.as_millis() / gap.as_millis()).context("a short run")?;
        let submissions = (0..pairs).map(|number| async move {
            sleep_until(begun + gap * number).await;
            let (job, pod) = (format!("job-{number:04}"), format!("pod-{number:04}"));
            tokio::try_join!(
                self.create::<Job>(job_in(JOBS, &job, 1)),
                self.create::<Pod>(objects::pod(&pod, PODS, 1)),
            )?;
            anyhow::Ok([job, pod])
        });
        let pairs: Vec<[String; 2]> =
            stream::iter(submissions).buffer_unordered(AT_A_TIME).try_collect().await?;
        Ok(pairs.into_iter().flatten().collect())
    }

    /// Submits a group of so many pods. Returns their names.
    pub(super) async fn group(&self, members: usize) -> Result<Vec<String>> {
        let submissions = (0..members).map(|number| {
            let name = format!("member-{number:04}");
            let pod = objects::in_group(objects::pod(&name, GROUP, 1), GROUP, members);
            async move { self.create::<Pod>(pod).await.map(|()| name) }
        });
        stream::iter(submissions).buffer_unordered(AT_A_TIME / 2).try_collect().await
    }

    /// Submits Jobs that do not end: half as many again as the queues have cpus. Waits until they hold all quota.
    pub(super) async fn fill(&self, cpu: u32) -> Result<()> {
        for number in 0..cpu + cpu / 2 {
            let name = format!("long-{number:04}");
            self.create::<Job>(job_in(JOBS, &name, LONG)).await?;
        }
        let admitted = |one: &&Workload| {
            is_true(&one.status.conditions, "Admitted")
                && !is_true(&one.status.conditions, FINISHED)
        };
        let full = |all: &[Workload]| all.iter().filter(admitted).count() == cpu as usize;
        let workloads = self.hub.api::<Workload>(self.namespace);
        self.hub.until_all(&workloads, "", "the queues are full", WITHIN, full).await?;
        Ok(())
    }

    /// Waits until the Workload of everything is finished. No other Workload ends before.
    pub(super) async fn until_finished(&self, submitted: &SubmittedWork) -> Result<()> {
        // One for the group.
        let wanted = submitted.names.len() + 1;
        let finished = |all: &[Workload]| {
            let finished = all.iter().filter(|one| is_true(&one.status.conditions, FINISHED));
            finished.count() == wanted
        };
        let workloads = self.hub.api::<Workload>(self.namespace);
        let what = format!("{wanted} Workloads are finished");
        self.hub.until_all(&workloads, "", &what, WITHIN, finished).await?;
        Ok(())
    }

    /// Requests that were sent again.
    pub(super) fn sent_again(&self) -> usize {
        self.sent_again.load(Ordering::Relaxed)
    }

    async fn create<K>(&self, object: Value) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
        K::DynamicType: Default,
    {
        let api: Api<K> = self.hub.api(self.namespace);
        let object: K = serde_json::from_value(object)?;
        let mut tries = 0;
        loop {
            tries += 1;
            match api.create(&PostParams::default(), &object).await {
                Ok(_) => return Ok(()),
                // An earlier request was applied, though its answer said otherwise.
                Err(kube::Error::Api(status)) if status.code == 409 && tries > 1 => return Ok(()),
                Err(error) if tries == TRIES => {
                    return Err(error).with_context(|| format!("creating {}", object.name_any()));
                }
                Err(_) => {
                    self.sent_again.fetch_add(1, Ordering::Relaxed);
                    sleep(SEND_AGAIN).await;
                }
            }
        }
    }
}

fn job_in(queue: &str, name: &str, seconds: u32) -> Value {
    let mut job = objects::job(name, 1, "1", seconds);
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(queue);
    job
}
