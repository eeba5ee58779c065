//! A head and a worker as a group of plain pods.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::fixture::{RayFixture, container, node_of};
use crate::head::RayHead;

/// The name of the group.
const GROUP: &str = "ray";

/// The Service of the head, which the owner of the namespace has on every cluster.
const SERVICE: &str = "ray-head";

#[tokio::test]
#[ignore = "make test-real"]
async fn a_head_and_a_worker_of_a_pod_group_run_a_job_together() -> Result<()> {
    let fixture = RayFixture::open("ray_pods").await?;
    for worker in &fixture.workers {
        worker.apply(&service().to_string(), fixture.namespace()).await?;
    }
    let head = "ray start --head --dashboard-host=0.0.0.0 --num-cpus=1 --block";
    fixture.submit(&member("head", "3Gi", head)).await?;
    let address = format!("{SERVICE}.{}.svc.cluster.local:6379", fixture.namespace());
    let joins = format!(
        "until ray health-check --address {address}; do sleep 1; done; \
         ray start --address={address} --num-cpus=1 --block"
    );
    fixture.submit(&member("worker", "2Gi", &joins)).await?;

    let worker = fixture.until_placed("head").await?;
    let head = fixture.until_ready(worker, "role=head", 1).await?;
    ensure!(node_of(&head)? == worker.state().real_nodes[0].name, "{head:?}");
    let (namespace, pod) = (fixture.namespace(), &*head.name_any());
    let ray = RayHead { worker, namespace, pod };
    ray.ensure_version().await?;
    ray.ensure_job_succeeds("pods").await?;

    let pods: Api<Pod> = fixture.hub.api(namespace);
    pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    fixture.until_no_pod_is_left().await
}

/// The address of the head before it is ready, as its worker waits for it.
fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE},
        "spec": {
            "clusterIP": "None", "publishNotReadyAddresses": true,
            "selector": {"role": "head"}, "ports": [{"name": "gcs", "port": 6379}],
        },
    })
}

fn member(role: &str, memory: &str, script: &str) -> Value {
    let mut container = container("ray", memory);
    container["command"] = json!(["bash", "-c", script]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": role,
            "labels": {
                "role": role, "kueue.x-k8s.io/queue-name": "queue",
                "kueue.x-k8s.io/pod-group-name": GROUP,
            },
            "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
        },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 2,
            "containers": [container],
        },
    })
}
