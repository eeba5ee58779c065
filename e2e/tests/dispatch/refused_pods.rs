//! Pods that only the API server of a worker knows to refuse, each for another cause (docs/reference/dispatch.md §4).

use anyhow::{Context, Result, ensure};
use crds::{
    meta::{Condition, find},
    v1beta2::Workload,
};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::{batch::v1::Job, core::v1::ResourceQuota};
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, delete, said},
    objects,
};

/// A worker refuses the pods of a Job in these words once this object is there. The clone leaves it, the Workload says why, and the Job
/// runs on the other worker.
async fn moves_on(test: &str, refusing: impl Fn(&str) -> Value, words: &str) -> Result<()> {
    let fixture = DispatchFixture::shared(test).await?;
    let (worker, namespace) = (fixture.worker(1), fixture.namespace());
    worker.apply(&refusing(namespace).to_string(), namespace).await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    let mut job = objects::job("train", 1, "2", 3600);
    // Without it a LimitRange would give its maximum, which is less than the request.
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = json!({"cpu": "2"});
    fixture.submit(&job).await?;

    let (clone, refusal) = evicted(&fixture, words).await?;
    let created = clone.metadata.creation_timestamp.as_ref().context("a time")?.0;
    let took = refusal.transitioned_at().context("a time")?.duration_since(created);
    ensure!(took.as_secs() <= 60, "the refusal took {took:?}: {refusal:?}");
    runs_on_the_other(&fixture, words, 1).await
}

/// A clone on the first worker, once its eviction says that pods are refused in these words, and the eviction.
async fn evicted(fixture: &DispatchFixture, words: &str) -> Result<(Workload, Condition)> {
    let eviction = |one: &Workload| -> Option<Condition> {
        let evicted = find(&one.status.conditions, "Evicted");
        let is_meant = |said: &&Condition| {
            said.status == "True" && said.reason == "PodsRefused" && said.message.contains(words)
        };
        evicted.filter(is_meant).cloned()
    };
    let refused = |all: &[Workload]| all.iter().any(|one| eviction(one).is_some());
    let worker = fixture.worker(1);
    let clones = worker.api::<Workload>(fixture.namespace());
    let all = worker.until_all(&clones, "", "the clone is evicted", TIMEOUT, refused).await?;
    let evicted = all.into_iter().find_map(|one| eviction(&one).map(|found| (one, found)));
    evicted.context("an evicted clone")
}

/// The Workload of the Job says in these words why it waits. Once the second worker has a node, so many pods run there.
async fn runs_on_the_other(fixture: &DispatchFixture, words: &str, pods: usize) -> Result<()> {
    let explains = |one: &Workload| {
        said(&one.status.conditions, "QuotaReserved")
            .is_some_and(|said| !said.status && said.message.contains(words))
    };
    let waits = fixture.until_workload("train", "says why it waits", explains).await?;
    ensure!(waits.status.cluster_name.is_none(), "{:?}", waits.status);
    fixture.nodes(2, 1, "2").await?;
    fixture.until_running("train", pods, 2).await?;
    delete(&fixture.api::<Job>(), "train").await?;
    fixture.until_nothing_is_left().await
}

/// The quota of a namespace is known to its API server only.
#[tokio::test]
async fn a_job_leaves_a_worker_with_a_quota_that_its_pods_exceed() -> Result<()> {
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
    evicted(&fixture, "exceeded quota: small").await?;
    runs_on_the_other(&fixture, "exceeded quota: small", 2).await
}

#[tokio::test]
async fn a_job_leaves_a_worker_with_a_limit_range_that_its_pods_exceed() -> Result<()> {
    let limits = |_: &str| {
        json!({
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
            "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
        })
    };
    moves_on("limit_range", limits, "maximum cpu usage per Container is 1").await
}

#[tokio::test]
async fn a_job_leaves_a_worker_with_a_pod_security_standard_that_its_pods_violate() -> Result<()> {
    let restricted = |namespace: &str| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        })
    };
    moves_on("pod_security", restricted, "violates PodSecurity \"restricted:latest\"").await
}

#[tokio::test]
async fn a_job_leaves_a_worker_with_a_webhook_that_takes_no_pods() -> Result<()> {
    // Nothing listens there: the API server refuses what it cannot ask about.
    let webhook = |namespace: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [{
                "name": "refuses.example.com", "failurePolicy": "Fail", "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                }],
            }],
        })
    };
    moves_on("webhook_refuses", webhook, "failed calling webhook \"refuses.example.com\"").await
}
