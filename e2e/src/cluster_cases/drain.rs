//! The job of a drained worker moves to the other one, where new ones go as well.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use serde_json::{Value, json};

use super::CasePlace;
use super::place::{self, WORKERS};
use crate::installation::TIMEOUT;
use crate::{objects, waits};

/// A deadline that has passed: running work is withdrawn at once.
const PASSED: &str = "2020-01-01T00:00:00Z";

pub(super) async fn moves_the_job(place: &CasePlace<'_>) -> Result<()> {
    place.queue(2).await?;
    let name = place.namespace;
    let configuration = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
        "metadata": {"name": name, "annotations": {"sluice.dev/policy": name}},
        "spec": {"clusters": WORKERS},
    });
    place.submit(&policy(name, &json!([]))).await?;
    place.submit(&configuration).await?;
    place.submit(&place::job("moves", 1, objects::LONG)).await?;
    let drained = place.until_running("moves", 1).await?;

    let clusters = json!([{"name": drained.name(), "drain": {"deadline": PASSED}}]);
    place.submit(&policy(name, &clusters)).await?;
    let other = place.workers.iter().find(|worker| worker.name() != drained.name());
    let other = other.context("another worker")?;
    place.until_running_on(other, "moves", 1).await?;
    place.until_no_pod_is_left(drained).await?;

    place.submit(&place::job("next", 1, 1)).await?;
    place.until_ended("next", "Complete").await?;
    let there = |one: &Workload| one.status.cluster_name.is_some();
    let workloads = (place.hub, name);
    let next = waits::until_workload(workloads, ("next", "has run"), TIMEOUT, there).await?;
    ensure!(next.status.cluster_name.as_deref() == Some(other.name()), "{:?}", next.status);
    place.ensure_once("next", 1).await.map(drop)
}

fn policy(name: &str, clusters: &Value) -> Value {
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy",
        "metadata": {"name": name}, "spec": {"clusters": clusters},
    })
}
