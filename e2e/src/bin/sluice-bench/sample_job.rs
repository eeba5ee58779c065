//! The Jobs of the measurements.

use anyhow::{Context, Result};
use harness::annotation;
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use crate::environment::NAME;

/// A Job whose pods run at the same time, for so long.
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

    /// The object, in the queue of the installation.
    pub(crate) fn object(&self) -> Result<Job> {
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
