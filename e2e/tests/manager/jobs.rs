//! Webhooks of Jobs on a real API server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::Cluster;
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{TIMEOUT, world};

/// Between two tries.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A namespace with one queue that dispatches and one that does not.
async fn queues(cluster: &Cluster, namespace: &str) -> Result<()> {
    let kind = "kueue.x-k8s.io/v1beta2";
    let check = format!("{namespace}-check");
    let cluster_queue = |name: &str, strategy: Value| {
        json!({
            "apiVersion": kind, "kind": "ClusterQueue", "metadata": {"name": format!("{namespace}-{name}")},
            "spec": {"admissionChecksStrategy": strategy},
        })
    };
    let local_queue = |name: &str| {
        json!({
            "apiVersion": kind, "kind": "LocalQueue", "metadata": {"name": name},
            "spec": {"clusterQueue": format!("{namespace}-{name}")},
        })
    };
    let checks = json!({"admissionChecks": [{"name": &check}]});
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({
            "apiVersion": kind, "kind": "AdmissionCheck", "metadata": {"name": &check},
            "spec": {"controllerName": "kueue.x-k8s.io/multikueue"},
        }),
        cluster_queue("far", checks),
        cluster_queue("near", Value::Null),
        local_queue("far"),
        local_queue("near"),
    ];
    let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    Ok(cluster.apply(&text, namespace).await?)
}

fn job(name: &str, labels: &Value) -> Result<Job> {
    let container = json!({"name": "c", "image": "example.com/i:1"});
    let pod = json!({"restartPolicy": "Never", "containers": [container]});
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
        "spec": {"template": {"spec": pod}},
    });
    serde_json::from_value(job).context("a Job")
}

/// Whether a Job with these labels is suspended, and its `managedBy`.
async fn made(jobs: &Api<Job>, name: &str, labels: Value, dry: bool) -> Result<(bool, String)> {
    let parameters = PostParams { dry_run: dry, ..PostParams::default() };
    let spec = jobs.create(&parameters, &job(name, &labels)?).await?.spec.context("a spec")?;
    Ok((spec.suspend == Some(true), spec.managed_by.unwrap_or_default()))
}

#[tokio::test]
async fn a_job_with_a_queue_is_suspended_and_managed_by_multikueue_if_the_queue_dispatches()
-> Result<()> {
    let world = world().await?;
    queues(&world.cluster, "jobs").await?;
    let jobs: Api<Job> = world.cluster.api("jobs");
    let workers = "kueue.x-k8s.io/multikueue".to_owned();
    let far = json!({"kueue.x-k8s.io/queue-name": "far"});
    // The manager's watch delivers the queue shortly after its creation.
    let seen = async {
        while made(&jobs, "far", far.clone(), true).await?.1 != workers {
            sleep(POLL_INTERVAL).await;
        }
        anyhow::Ok(())
    };
    timeout(TIMEOUT, seen).await.context("the queue leads to workers")??;
    assert_eq!(made(&jobs, "far", far, false).await?, (true, workers));
    let near = json!({"kueue.x-k8s.io/queue-name": "near"});
    assert_eq!(made(&jobs, "near", near, false).await?, (true, String::new()));
    assert_eq!(made(&jobs, "own", json!({}), false).await?, (false, String::new()));
    Ok(())
}

#[tokio::test]
async fn the_child_of_a_managed_job_is_not_suspended() -> Result<()> {
    let world = world().await?;
    let jobs: Api<Job> = world.cluster.api("default");
    let labels = json!({"kueue.x-k8s.io/queue-name": "any"});
    let parent = jobs.create(&PostParams::default(), &job("parent", &labels)?).await?;
    let mut child = job("child", &labels)?;
    child.metadata.owner_references = Some(vec![serde_json::from_value(json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "parent", "uid": parent.metadata.uid,
        "controller": true,
    }))?]);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let made = jobs.create(&dry, &child).await?;
    assert_eq!(made.spec.context("a spec")?.suspend, Some(false));
    Ok(())
}

#[tokio::test]
async fn an_invalid_job_is_denied_with_kueues_message() -> Result<()> {
    let world = world().await?;
    let jobs: Api<Job> = world.cluster.api("default");
    let labels = json!({"kueue.x-k8s.io/max-exec-time-seconds": "abc"});
    let bad = job("bad", &labels)?;
    let Err(kube::Error::Api(status)) = jobs.create(&PostParams::default(), &bad).await else {
        anyhow::bail!("not refused");
    };
    ensure!(status.code == 403, "{status:?}");
    assert_eq!(
        status.message,
        "admission webhook \"vjob.kb.io\" denied the request: metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: \
         Invalid value: \"abc\": strconv.Atoi: parsing \"abc\": invalid syntax"
    );
    Ok(())
}
