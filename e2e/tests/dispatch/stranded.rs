//! Pods that a worker does not run although it reported free capacity: no node takes them, or its API server refuses them
//! (docs/reference/dispatch.md §4).

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use k8s_openapi::api::{batch::v1::Job, core::v1::ResourceQuota};
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, delete, said},
    objects,
};

/// A capacity report does not contain anti-affinity between pods of a Job.
#[tokio::test]
async fn a_job_whose_pods_fit_no_node_is_dispatched_to_the_next_worker() -> Result<()> {
    let fixture = DispatchFixture::shared("stranded").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    let mut job = objects::job("train", 2, "1", 3600);
    job["spec"]["template"]["metadata"]["labels"] = json!({"apart": "yes"});
    job["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"apart": "yes"}},
        }],
    }});
    fixture.submit(&job).await?;
    fixture.until_running("train", 1, 1).await?;
    fixture.nodes(2, 2, "1").await?;

    let clones = fixture.worker(1).api::<Workload>(fixture.namespace());
    let stranded = |all: &[Workload]| {
        let mut evicted = all.iter().filter_map(|one| said(&one.status.conditions, "Evicted"));
        evicted
            .any(|said| said.reason == "Unschedulable" && said.message.contains("no node took pod"))
    };
    let what = "a clone is evicted";
    fixture.worker(1).until_all(&clones, "", what, 2 * TIMEOUT, stranded).await?;
    fixture.until_running("train", 2, 2).await?;
    delete(&fixture.api::<Job>(), "train").await?;
    fixture.until_nothing_is_left().await
}

/// The quota of a namespace is known to its API server only.
#[tokio::test]
async fn a_job_whose_pods_are_refused_leaves_its_worker_within_a_minute() -> Result<()> {
    let fixture = DispatchFixture::shared("pods_refused").await?;
    let (worker, namespace) = (fixture.worker(1), fixture.namespace());
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}},
    });
    worker.apply(&quota.to_string(), namespace).await?;
    let counted = |quota: &ResourceQuota| {
        quota.status.as_ref().is_some_and(|status| status.hard.is_some() && status.used.is_some())
    };
    worker.until(&worker.api(namespace), "small", "is counted", TIMEOUT, counted).await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&objects::job("train", 2, "1", 3600)).await?;
    fixture.until_running("train", 1, 1).await?;

    let clones = worker.api::<Workload>(namespace);
    let refused = |all: &[Workload]| {
        let mut evicted = all.iter().filter_map(|one| said(&one.status.conditions, "Evicted"));
        evicted.any(|said| {
            said.reason == "PodsRefused" && said.message.contains("exceeded quota: small")
        })
    };
    worker.until_all(&clones, "", "the clone is evicted", TIMEOUT, refused).await?;
    let explains = |one: &Workload| {
        said(&one.status.conditions, "QuotaReserved")
            .is_some_and(|said| !said.status && said.message.contains("exceeded quota: small"))
    };
    let waits = fixture.until_workload("train", "says why it waits", explains).await?;
    ensure!(waits.status.cluster_name.is_none(), "{:?}", waits.status);
    fixture.nodes(2, 1, "2").await?;
    fixture.until_running("train", 2, 2).await?;
    delete(&fixture.api::<Job>(), "train").await?;
    fixture.until_nothing_is_left().await
}
