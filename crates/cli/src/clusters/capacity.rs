//! The sums of a capacity report.

use std::collections::BTreeMap;

use crds::{quantity::Quantity, v1alpha1::ClusterCapacity};
use jiff::Timestamp;
use serde::Serialize;

use crate::amounts::{plus, times};

/// A report in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacitySummary {
    /// How the worker admits.
    pub mode: String,
    /// When the worker wrote the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_at: Option<String>,
    /// Seconds since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// Nodes that pods may use.
    pub nodes: i64,
    /// Free and total amounts over all nodes.
    pub resources: BTreeMap<String, ReportedResource>,
    /// Workloads of this manager that the worker has not admitted.
    pub pending: i32,
    /// Workloads of this manager that run.
    pub running: i32,
    /// Kinds of jobs that can run.
    pub kinds: Vec<String>,
}

/// One resource over all nodes of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportedResource {
    /// What is free.
    pub free: Quantity,
    /// What is free when nothing dispatched runs.
    pub total: Quantity,
}

impl CapacitySummary {
    /// The sums of a report.
    #[must_use]
    pub fn of(report: &ClusterCapacity, now: Timestamp) -> Self {
        let status = &report.status;
        let mut resources: BTreeMap<String, ReportedResource> = BTreeMap::new();
        for class in &status.node_classes {
            for (name, free) in &class.free {
                let resource = resources.entry(name.clone()).or_default();
                resource.free = plus(&resource.free, &times(free, class.count));
            }
            for (name, size) in &class.size {
                let resource = resources.entry(name.clone()).or_default();
                resource.total = plus(&resource.total, &times(size, class.count));
            }
        }
        let kinds = status.kinds.iter().map(|kind| {
            if kind.group.is_empty() {
                format!("{}/{}", kind.version, kind.kind)
            } else {
                format!("{}/{}/{}", kind.group, kind.version, kind.kind)
            }
        });
        let reported_at = status.reported_at.as_ref().map(|time| time.0);
        Self {
            mode: status.mode.clone(),
            reported_at: reported_at.map(|at| at.to_string()),
            age_seconds: reported_at.map(|at| (now.as_second() - at.as_second()).max(0)),
            nodes: status.node_classes.iter().map(|class| i64::from(class.count.max(0))).sum(),
            resources,
            pending: status.pending.own,
            running: status.running.own,
            kinds: kinds.collect(),
        }
    }
}
