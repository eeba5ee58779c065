//! `clusters`: the workers, whether they are connected, what they report, and what runs there.
//!
//! Pure: [`ClusterList::of`] makes the model out of objects, its texts are in `text`.

mod capacity;
mod drain_state;
#[cfg(test)]
mod tests;
mod text;

use crds::{
    meta::{Condition, find},
    names::{annotations::TOKEN_EXPIRES, conditions::ACTIVE},
    v1alpha1::{ClusterCapacity, DispatchPolicy},
    v1beta2::{MultiKueueCluster, MultiKueueConfig, Workload},
};
use jiff::Timestamp;
use serde::Serialize;

pub use capacity::{CapacitySummary, ReportedResource};
pub use drain_state::{AnnotatedDrain, DrainState, matches, policy_of, serves};

use crate::drain::holds_work_on;

/// The objects of the manager cluster that the list is made of.
#[derive(Clone, Debug, Default)]
pub struct ClusterObjects {
    /// The workers.
    pub clusters: Vec<MultiKueueCluster>,
    /// Copies of their reports, by the name of the worker.
    pub capacities: Vec<ClusterCapacity>,
    /// Sets of workers.
    pub configs: Vec<MultiKueueConfig>,
    /// Policies of these sets.
    pub policies: Vec<DispatchPolicy>,
    /// All Workloads.
    pub workloads: Vec<Workload>,
}

/// All workers, by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterList {
    /// The workers.
    pub clusters: Vec<ClusterSummary>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSummary {
    /// Name of the MultiKueueCluster.
    pub name: String,
    /// Status of its condition `Active`; `Unknown` without one.
    pub active: String,
    /// Reason of that condition.
    pub reason: String,
    /// Message of that condition.
    pub message: String,
    /// MultiKueueConfigs that dispatch to the worker.
    pub configs: Vec<String>,
    /// Whether the worker is drained or about to be, and when its work is withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainState>,
    /// The last report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacitySummary>,
    /// Workloads that are recorded or nominated for the worker and not finished.
    pub workloads: usize,
    /// When the token that `join` made expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_expires: Option<String>,
}

impl ClusterList {
    /// The model.
    #[must_use]
    pub fn of(objects: &ClusterObjects, now: Timestamp) -> Self {
        let summary = |cluster| ClusterSummary::of(cluster, objects, now);
        let mut clusters: Vec<ClusterSummary> = objects.clusters.iter().map(summary).collect();
        clusters.sort_by(|one, other| one.name.cmp(&other.name));
        Self { clusters }
    }
}

impl ClusterSummary {
    fn of(cluster: &MultiKueueCluster, objects: &ClusterObjects, now: Timestamp) -> Self {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let active = find(&cluster.status.conditions, ACTIVE);
        let text = |field: fn(&Condition) -> &String| active.map(field).cloned();
        let named = |one: &&ClusterCapacity| one.metadata.name.as_deref() == Some(&name);
        let report = objects.capacities.iter().find(named);
        let annotations = cluster.metadata.annotations.as_ref();
        let serving = objects
            .configs
            .iter()
            .filter(|config| serves(config, policy_of(config, &objects.policies), cluster));
        let serving: Vec<&MultiKueueConfig> = serving.collect();
        Self {
            active: text(|one| &one.status).unwrap_or_else(|| "Unknown".to_owned()),
            reason: text(|one| &one.reason).unwrap_or_default(),
            message: text(|one| &one.message).unwrap_or_default(),
            configs: serving.iter().filter_map(|config| config.metadata.name.clone()).collect(),
            drain: DrainState::of(cluster, &serving, &objects.policies, now),
            capacity: report.map(|report| CapacitySummary::of(report, now)),
            workloads: objects.workloads.iter().filter(|one| holds_work_on(one, &name)).count(),
            token_expires: annotations.and_then(|all| all.get(TOKEN_EXPIRES)).cloned(),
            name,
        }
    }
}
