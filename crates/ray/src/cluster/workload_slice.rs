//! The gate of pods that belong to a slice of an elastic Workload.
//!
//! Source: docs/reference/kueue.md §4.13.

use crds::names::{annotations::WORKLOAD_SLICE_NAME, gates};
use serde_json::{Value, json};

use crate::json::{annotation, items, list};

/// Adds the gate to the spec of a pod, if its template was started for a slice.
///
/// Usually the webhook of RayClusters has added it. A worker cluster without webhooks makes the RayCluster of a RayJob without the gate,
/// and its autoscaler would add workers that have no quota.
pub(super) fn gate(template: &Value, spec: &mut Value) {
    let is_gated =
        || items(&spec["schedulingGates"]).iter().any(|it| it["name"] == gates::ELASTIC_JOB);
    if annotation(template, WORKLOAD_SLICE_NAME).is_empty() || is_gated() {
        return;
    }
    list(spec, "schedulingGates").push(json!({"name": gates::ELASTIC_JOB}));
}
