//! The Jobs of the measurements.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use harness::{Cluster, annotation};
use k8s_openapi::api::batch::v1::Job;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::environment::NAME;

/// The most requests of a burst in flight.
const AT_A_TIME: usize = 32;

/// Makes many submissions, as fast as the API server answers.
pub(crate) async fn submit_all<F>(submissions: impl IntoIterator<Item = F>) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    stream::iter(submissions).buffer_unordered(AT_A_TIME).try_collect().await
}

/// A Job with pods that run at the same time, for so long.
pub(crate) struct SampleJob<'a> {
    pub(crate) name: &'a str,
    pub(crate) run_seconds: u32,
    pub(crate) pods: u32,
    /// Of each pod.
    pub(crate) requests: Value,
    /// Of the Job.
    pub(crate) labels: Value,
}

impl<'a> SampleJob<'a> {
    /// One small pod.
    pub(crate) fn small(name: &'a str, run_seconds: u32) -> Self {
        Self { name, run_seconds, pods: 1, requests: json!({"cpu": "1"}), labels: json!({}) }
    }

    /// Creates the Job in the queue of the installation.
    pub(crate) async fn submit(&self, hub: &Cluster) -> Result<()> {
        let created = hub.api::<Job>(NAME).create(&PostParams::default(), &self.object()?).await;
        created.map(drop).with_context(|| format!("creating the Job {}", self.name))
    }

    fn object(&self) -> Result<Job> {
        let mut labels = self.labels.clone();
        labels["kueue.x-k8s.io/queue-name"] = json!(NAME);
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"parallelism": self.pods, "completions": self.pods, "template": {
                "metadata": {"annotations": {annotation::RUN_SECONDS: self.run_seconds.to_string()}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "main", "image": "main",
                        "resources": {"requests": self.requests, "limits": self.requests},
                    }],
                },
            }},
        });
        serde_json::from_value(job).with_context(|| format!("the Job {}", self.name))
    }
}
