//! Deployments: each pod is queued by itself, and runs on the manager's own cluster or on a worker.

use anyhow::{Result, ensure};
use crds::{
    names::{MANAGED, annotations::POD_SUSPENDING_PARENT},
    v1beta2::ClusterQueue,
};
use e2e::{installation::TIMEOUT, objects::phase, waits};
use harness::annotation;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::pods::{PodsFixture, has_finalizer, is_gated};

fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "serve", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "serve"}},
            "template": {
                "metadata": {
                    "labels": {"app": "serve"}, "annotations": {annotation::RUN_SECONDS: "3600"},
                },
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}},
                    }],
                },
            },
        },
    })
}

async fn until_admitted(fixture: &PodsFixture, pods: i32) -> Result<()> {
    let queues = fixture.hub.cluster_api::<ClusterQueue>();
    let admitted = |queue: &ClusterQueue| queue.status.admitted_workloads == pods;
    let what = format!("has {pods} pods");
    fixture.hub.until(&queues, fixture.space.namespace(), &what, 2 * TIMEOUT, admitted).await?;
    Ok(())
}

/// Quota for two of three pods: the third one waits until one of the others goes.
#[tokio::test]
async fn pods_of_a_deployment_are_queued_one_by_one() -> Result<()> {
    let fixture = PodsFixture::new("deployment", "2").await?;
    let deployments: Api<Deployment> = fixture.hub.api(fixture.space.namespace());
    let created =
        deployments.create(&PostParams::default(), &serde_json::from_value(deployment(3))?).await?;
    let template = &serde_json::to_value(&created)?["spec"]["template"]["metadata"];
    ensure!(template["labels"][MANAGED] == "true", "{template}");
    ensure!(template["annotations"][POD_SUSPENDING_PARENT] == "deployment", "{template}");

    let gates = |all: &[Pod]| (all.len(), all.iter().filter(|pod| is_gated(pod)).count());
    let one_waits = |all: &[Pod]| gates(all) == (3, 1);
    let pods = fixture
        .hub
        .until_all(&fixture.pods(), "", "two of three start", 2 * TIMEOUT, one_waits)
        .await?;
    ensure!(!pods.iter().any(has_finalizer), "the Deployment replaces pods, nothing keeps them");
    until_admitted(&fixture, 2).await?;

    let scaled = Patch::Merge(json!({"spec": {"replicas": 1}}));
    deployments.patch("serve", &PatchParams::default(), &scaled).await?;
    let one_runs = |all: &[Pod]| gates(all) == (1, 0);
    fixture.hub.until_all(&fixture.pods(), "", "one is left", 2 * TIMEOUT, one_runs).await?;
    until_admitted(&fixture, 1).await?;

    deployments.delete("serve", &DeleteParams::background()).await?;
    let namespace = fixture.space.namespace();
    waits::until_no_pod_is_left(&fixture.hub, namespace, 2 * TIMEOUT).await?;
    fixture.until_quota_is_free().await
}

#[tokio::test]
async fn a_pod_of_a_deployment_runs_on_a_worker() -> Result<()> {
    let (fixture, worker) = PodsFixture::dispatched("dispatched_deployment", "1").await?;
    let namespace = fixture.space.namespace();
    let deployments: Api<Deployment> = fixture.hub.api(namespace);
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment(1))?).await?;
    let copies: Api<Pod> = worker.api(namespace);
    let runs = |all: &[Pod]| all.len() == 1 && !is_gated(&all[0]) && phase(&all[0]) == "Running";
    worker.until_all(&copies, "", "the copy runs", 2 * TIMEOUT, runs).await?;

    let shows = |all: &[Pod]| all.len() == 1 && is_gated(&all[0]) && phase(&all[0]) == "Running";
    let pods = fixture.pods();
    fixture.hub.until_all(&pods, "", "the pod shows its copy", 2 * TIMEOUT, shows).await?;
    let is_ready =
        |one: &Deployment| one.status.as_ref().and_then(|status| status.ready_replicas) == Some(1);
    fixture.hub.until(&deployments, "serve", "counts its pod", 2 * TIMEOUT, is_ready).await?;

    deployments.delete("serve", &DeleteParams::background()).await?;
    for cluster in [&fixture.hub, &worker] {
        waits::until_no_pod_is_left(cluster, namespace, 2 * TIMEOUT).await?;
    }
    fixture.until_quota_is_free().await
}
