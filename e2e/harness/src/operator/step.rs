//! What is next for one job.
//!
//! ```text
//! suspended ──> delete all pods        unsuspended ──> create the pods that are missing
//! a replica failed, or all succeeded ──> result, delete the pods that have not ended
//! ```

use std::collections::BTreeSet;

use jobs::Kind;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::Value;

use super::played_status::{self, PlayedResult};
use super::replica_counts::{ReplicaCounts, has_ended};
use super::replicated_pods::{ReplicatedPods, TemplateObjects};

/// What the operator does.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct OperatorStep {
    /// Pods to create.
    pub(super) create: Vec<Value>,
    /// Names of pods to delete.
    pub(super) delete: Vec<String>,
    /// The job with its new status.
    pub(super) status: Option<Value>,
}

/// The next step of a job with these pods. `sources` are the other objects with its templates.
pub(super) fn next_step(
    (kind, sources): (&Kind, &TemplateObjects),
    job: &Value,
    pods: &[&Pod],
    now: Timestamp,
) -> OperatorStep {
    if is_managed_elsewhere(kind, job) {
        return OperatorStep::default();
    }
    let switch = kind.suspend().and_then(|switch| switch.get(job));
    let suspended = switch == Some(&Value::Bool(true));
    let sets = ReplicatedPods::of((kind, sources), job);
    let counts: Vec<ReplicaCounts> = sets.iter().map(|set| ReplicaCounts::of(set, pods)).collect();
    let before = played_status::result(kind, job);
    let result = before.or_else(|| result(&sets, &counts).filter(|_| !suspended));
    let mut next = job.clone();
    played_status::write(kind, &counts, result.filter(|_| before.is_none()), now, &mut next);
    OperatorStep {
        create: if suspended || result.is_some() {
            Vec::new()
        } else {
            missing(kind, job, &sets, pods)
        },
        delete: to_delete(pods, suspended, result.is_some()),
        status: (next != *job).then_some(next),
    }
}

fn is_managed_elsewhere(kind: &Kind, job: &Value) -> bool {
    let named = kind.managed_by().map(|rule| (rule.at.text(job), rule.controller.as_str()));
    named.is_some_and(|(value, own)| value.is_some_and(|value| value != own))
}

fn result(sets: &[ReplicatedPods], counts: &[ReplicaCounts]) -> Option<PlayedResult> {
    if counts.iter().any(|one| one.failed > 0) {
        return Some(PlayedResult::Failed);
    }
    let all = sets.iter().zip(counts).all(|(set, one)| one.succeeded == set.replicas);
    all.then_some(PlayedResult::Succeeded)
}

/// Pods that are not there. A deleted pod keeps its name until it is gone.
fn missing(kind: &Kind, job: &Value, sets: &[ReplicatedPods], pods: &[&Pod]) -> Vec<Value> {
    let names: BTreeSet<String> = pods.iter().map(|pod| pod.name_any()).collect();
    let wanted = sets.iter().flat_map(|set| set.pods(kind, job));
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    wanted.filter(|pod| !names.contains(&name(pod))).collect()
}

fn to_delete(pods: &[&Pod], suspended: bool, over: bool) -> Vec<String> {
    let unwanted = |pod: &Pod| if over { !has_ended(pod) } else { suspended };
    let there = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    there.filter(|pod| unwanted(pod)).map(|pod| pod.name_any()).collect()
}
