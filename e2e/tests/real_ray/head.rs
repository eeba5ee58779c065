//! The HTTP API of a Ray head, reached through the API server of its cluster.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::Cluster;
use http::Request;
use images::ray::RAY_IMAGE;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::fixture::RAY_TIMEOUT;

/// Pause between two requests: a job cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A job that waits for both nodes of the cluster and runs a task on each.
pub(crate) const JOB: &str = r#"python -c '
import ray, time
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
ray.init()
alive = lambda: [node for node in ray.nodes() if node["Alive"]]
while len(alive()) < 2: time.sleep(0.5)
address = ray.remote(num_cpus=0.5)(lambda: ray.util.get_node_ip_address())
tasks = [address.options(scheduling_strategy=On(node["NodeID"], soft=False)).remote() for node in alive()]
print("tasks ran on", len(set(ray.get(tasks))), "nodes")
'"#;

/// What [`JOB`] prints.
pub(crate) const PRINTED: &str = "tasks ran on 2 nodes";

/// A head in a pod.
pub(crate) struct RayHead<'a> {
    pub(crate) worker: &'a Cluster,
    pub(crate) namespace: &'a str,
    pub(crate) pod: &'a str,
}

impl RayHead<'_> {
    /// The programs of the head are Ray of the version in the image.
    pub(crate) async fn ensure_version(&self) -> Result<()> {
        let answer = self.until_answered("/api/version").await?;
        let version = RAY_IMAGE.rsplit(':').next();
        ensure!(answer["ray_version"].as_str() == version, "{answer}");
        Ok(())
    }

    /// Submits [`JOB`] and waits until it has succeeded on both nodes.
    pub(crate) async fn ensure_job_succeeds(&self, id: &str) -> Result<()> {
        let job = json!({"entrypoint": JOB, "submission_id": id});
        let answer = self.ask("POST", "/api/jobs/", &job).await.context("submitting a job")?;
        ensure!(answer["submission_id"] == id, "{answer}");
        let ended = async {
            loop {
                let job = self.ask("GET", &format!("/api/jobs/{id}"), &Value::Null).await?;
                let status = job["status"].as_str().unwrap_or_default();
                if ["SUCCEEDED", "FAILED", "STOPPED"].contains(&status) {
                    return anyhow::Ok(job);
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        let ended =
            timeout(RAY_TIMEOUT, ended).await.with_context(|| format!("{id} runs on"))??;
        let logs = self.ask("GET", &format!("/api/jobs/{id}/logs"), &Value::Null).await?;
        let printed = logs["logs"].as_str().is_some_and(|text| text.contains(PRINTED));
        ensure!(ended["status"] == "SUCCEEDED" && printed, "{ended} {logs}");
        Ok(())
    }

    /// The answer to a request, once the head answers.
    async fn until_answered(&self, path: &str) -> Result<Value> {
        let mut last = None;
        let answered = async {
            loop {
                match self.ask("GET", path, &Value::Null).await {
                    Ok(answer) => return answer,
                    Err(error) => last = Some(error),
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        let answered = timeout(RAY_TIMEOUT, answered).await;
        answered.with_context(|| format!("the head {} does not answer: {last:?}", self.pod))
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let Self { worker, namespace, pod } = self;
        let uri = format!("/api/v1/namespaces/{namespace}/pods/{pod}:8265/proxy{path}");
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(uri);
        let request = request.header("content-type", "application/json").body(body)?;
        Ok(worker.client().request(request).await?)
    }
}
