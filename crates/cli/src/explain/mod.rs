//! `explain`: where a Workload is, or why it is pending.
//!
//! Pure: [`workloads_of`] selects the Workloads of a name, [`WorkloadExplanation::of`] makes the model, its text is in `text`.
//! The reasons are those that the manager writes; nothing is computed a second time.

mod cluster_reasons;
mod event_lines;
pub mod position;
mod selection;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use crds::{
    meta::{Condition, find, find_true, is_true},
    names::conditions::{ADMITTED, EVICTED, FINISHED, PODS_FAILING, QUOTA_RESERVED},
    quantity::Quantity,
    v1beta2::{LocalQueue, Workload},
};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use serde::Serialize;

pub use cluster_reasons::ClusterReason;
pub use event_lines::{EventLine, JobRefusal, refusals};
pub use position::PendingPlace;
pub use selection::{NameParseFailure, WorkloadQuery, workloads_of};

/// What is known of one Workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadExplanation {
    /// Namespace.
    pub namespace: String,
    /// Name of the Workload.
    pub workload: String,
    /// The jobs that own it, as `Kind/name`.
    pub jobs: Vec<String>,
    /// The LocalQueue.
    pub queue: String,
    /// The ClusterQueue that holds the quota, or that the LocalQueue names.
    pub cluster_queue: String,
    /// Priority.
    pub priority: i32,
    /// The state in one word.
    pub state: WorkloadState,
    /// Reason of the condition that the state follows from.
    pub reason: String,
    /// Message of that condition.
    pub message: String,
    /// Position among the pending Workloads of the ClusterQueue, from 0, if the manager serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// What it lacks and what would make it admissible, if the manager has explained it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The worker that runs the Workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The workers that it is nominated for.
    pub nominated_clusters: Vec<String>,
    /// Why each worker does not take the Workload.
    pub cluster_reasons: Vec<ClusterReason>,
    /// Why its pods cannot start on the worker, while they cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods_failing: Option<String>,
    /// Not queued again before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_at: Option<String>,
    /// The pod sets.
    pub pod_sets: Vec<PodSetLine>,
    /// The admission checks.
    pub admission_checks: Vec<CheckLine>,
    /// The conditions.
    pub conditions: Vec<ConditionLine>,
    /// Events about the Workload and its jobs, newest last.
    pub events: Vec<EventLine>,
    /// When the model was made.
    #[serde(skip)]
    pub now: Timestamp,
}

/// The state of a Workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WorkloadState {
    /// The job has ended.
    Finished,
    /// `spec.active` is false.
    Deactivated,
    /// Quota is reserved and all checks are ready.
    Admitted,
    /// Quota is reserved, a check is not ready.
    QuotaReserved,
    /// Evicted, and not yet pending again.
    Evicted,
    /// No quota is reserved.
    Pending,
}

/// A pod set with its flavors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSetLine {
    /// Name.
    pub name: String,
    /// Number of pods.
    pub count: i32,
    /// Flavor by resource, once quota is reserved.
    pub flavors: BTreeMap<String, String>,
    /// Usage of all pods, or their requests while the Workload is pending.
    pub resources: BTreeMap<String, Quantity>,
}

/// An admission check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckLine {
    /// Name.
    pub name: String,
    /// State.
    pub state: String,
    /// Message.
    pub message: String,
    /// When the state last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConditionLine {
    /// Type.
    pub r#type: String,
    /// Status.
    pub status: String,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
    /// When the status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// What surrounds a Workload.
#[derive(Clone, Debug, Default)]
pub struct ExplanationInputs {
    /// Its LocalQueue.
    pub local_queue: Option<LocalQueue>,
    /// The names of all workers.
    pub clusters: Vec<String>,
    /// Events of the namespace.
    pub events: Vec<Event>,
    /// What the visibility API says of it, if the manager serves that.
    pub visible: Option<PendingPlace>,
}

impl WorkloadExplanation {
    /// The model.
    #[must_use]
    pub fn of(workload: &Workload, inputs: &ExplanationInputs, now: Timestamp) -> Self {
        let status = &workload.status;
        let (state, condition) = state_of(workload);
        let message = condition.map(|one| one.message.clone()).unwrap_or_default();
        let reserved = status.admission.as_ref().map(|one| one.cluster_queue.clone());
        let named = inputs.local_queue.as_ref().map(|queue| queue.spec.cluster_queue.clone());
        let requeue = status.requeue_state.as_ref().and_then(|one| one.requeue_at.as_ref());
        Self {
            namespace: workload.metadata.namespace.clone().unwrap_or_default(),
            workload: workload.metadata.name.clone().unwrap_or_default(),
            jobs: selection::owners(workload)
                .map(|(kind, name)| format!("{kind}/{name}"))
                .collect(),
            queue: workload.spec.queue_name.clone(),
            cluster_queue: reserved.or(named).unwrap_or_default(),
            priority: workload.spec.priority.unwrap_or_default(),
            state,
            reason: condition.map(|one| one.reason.clone()).unwrap_or_default(),
            position: inputs.visible.as_ref().map(|one| one.position),
            explanation: explanation(state, condition, workload, inputs),
            cluster: status.cluster_name.clone(),
            nominated_clusters: status.nominated_cluster_names.clone(),
            cluster_reasons: cluster_reasons::read(&message, &inputs.clusters),
            message,
            pods_failing: pods_failing(workload),
            requeue_at: requeue.map(|time| time.0.to_string()),
            pod_sets: pod_sets(workload),
            admission_checks: checks(workload),
            conditions: status.conditions.iter().map(ConditionLine::of).collect(),
            events: event_lines::about(workload, &inputs.events),
            now,
        }
    }
}

/// What a pending Workload lacks: from the replica that leads, or from the Event about it. An older Event than the condition is about
/// an earlier wait.
fn explanation(
    state: WorkloadState,
    condition: Option<&Condition>,
    workload: &Workload,
    inputs: &ExplanationInputs,
) -> Option<String> {
    let pending = condition.filter(|_| state == WorkloadState::Pending)?;
    let visible = inputs.visible.as_ref().map(|one| one.explanation.clone());
    let visible = visible.filter(|text| !text.is_empty());
    visible
        .or_else(|| event_lines::explanation(workload, &inputs.events, pending.transitioned_at()))
}

impl ConditionLine {
    fn of(condition: &Condition) -> Self {
        Self {
            r#type: condition.r#type.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.transitioned_at(),
        }
    }
}

/// The state, and the condition that it follows from.
fn state_of(workload: &Workload) -> (WorkloadState, Option<&Condition>) {
    let conditions = &workload.status.conditions;
    let of = |r#type| find(conditions, r#type);
    if workload.is_finished() {
        return (WorkloadState::Finished, of(FINISHED));
    }
    if !workload.is_active() {
        return (WorkloadState::Deactivated, of(EVICTED));
    }
    if is_true(conditions, ADMITTED) {
        return (WorkloadState::Admitted, of(ADMITTED));
    }
    if workload.has_quota_reservation() {
        return (WorkloadState::QuotaReserved, of(QUOTA_RESERVED));
    }
    match (workload.is_evicted(), of(QUOTA_RESERVED)) {
        // A refusal after the eviction is newer than the eviction.
        (true, None) => (WorkloadState::Evicted, of(EVICTED)),
        (_, pending) => (WorkloadState::Pending, pending),
    }
}

fn pods_failing(workload: &Workload) -> Option<String> {
    let failing = find_true(&workload.status.conditions, PODS_FAILING)?;
    Some(format!("{}: {}", failing.reason, failing.message))
}

fn pod_sets(workload: &Workload) -> Vec<PodSetLine> {
    let status = &workload.status;
    let assigned = status.admission.iter().flat_map(|one| &one.pod_set_assignments);
    let assigned: BTreeMap<&str, _> = assigned.map(|one| (one.name.as_str(), one)).collect();
    let pod_sets = workload.spec.pod_sets.iter().map(|pod_set| {
        let assignment = assigned.get(pod_set.name.as_str());
        let pending = status.resource_requests.iter().find(|one| one.name == pod_set.name);
        let requested = || pending.map(|one| one.resources.clone()).unwrap_or_default();
        let resources = assignment.map_or_else(requested, |one| one.resource_usage.clone());
        let flavors = assignment.map(|one| one.flavors.clone()).unwrap_or_default();
        PodSetLine {
            name: pod_set.name.clone(),
            count: assignment.and_then(|one| one.count).or(pod_set.count).unwrap_or(1),
            flavors: flavors.into_owned(),
            resources: resources.into_owned(),
        }
    });
    pod_sets.collect()
}

fn checks(workload: &Workload) -> Vec<CheckLine> {
    let checks = workload.status.admission_checks.iter().map(|check| CheckLine {
        name: check.name.clone(),
        state: check.state.clone(),
        message: check.message.clone(),
        since: check.last_transition_time.as_ref().map(|time| time.0),
    });
    checks.collect()
}
