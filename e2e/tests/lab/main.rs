//! The lab and the harness on real control planes. All tests of this binary share one lab.

mod components;
mod jobs;
mod lifecycle;
mod manifests;
mod observer;
mod pods;
mod processes;
mod proxy;
mod scale;

use anyhow::Result;
use e2e::objects::job_is;
use harness::{NodeSpec, Space, TestLab, secs};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Two cores with other work on them are slow; a test that hangs should still end.
const TIMEOUT: Duration = secs(60);

/// The lab of this binary, with nodes for ordinary pods in every worker.
async fn lab() -> Result<&'static TestLab> {
    static NODES: OnceCell<()> = OnceCell::const_new();
    let lab = TestLab::shared(2).await?;
    NODES.get_or_try_init(|| make_nodes(lab)).await?;
    Ok(lab)
}

async fn make_nodes(lab: &'static TestLab) -> Result<()> {
    for name in ["worker-1", "worker-2"] {
        let cluster = lab.cluster(name).await?;
        cluster.add_nodes(&NodeSpec { count: 4, ..NodeSpec::default() }).await?;
    }
    Ok(())
}

/// A job of `pods` parallel pods, with annotations for the simulation.
fn job(name: &str, pods: usize, annotations: &[(&str, &str)]) -> Result<Job> {
    let annotations: serde_json::Map<String, serde_json::Value> =
        annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "work", "image": "work",
                        "resources": {"requests": {"cpu": "10m", "memory": "1Mi"}},
                    }],
                },
            },
        },
    }))?)
}

/// A pod that belongs to nothing.
fn pod(name: &str, annotations: &[(&str, &str)]) -> Result<Pod> {
    let template = job(name, 1, annotations)?.spec.map(|spec| spec.template).unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    Ok(Pod {
        metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..metadata },
        spec: template.spec,
        status: None,
    })
}

/// Submits a job to worker number `worker`.
async fn submit(space: &Space, worker: usize, job: &Job) -> Result<()> {
    let jobs: Api<Job> = space.worker(worker)?.api(space.namespace());
    jobs.create(&PostParams::default(), job).await?;
    Ok(())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn complete(job: &Job) -> bool {
    job_is(job, "Complete")
}
