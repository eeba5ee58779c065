//! Settings that are understood but change nothing yet.
//!
//! Whoever makes a setting work removes its line here.

use std::collections::BTreeSet;

use serde_json::Value;

/// Paths of such settings. A block's name stands for all of its fields.
const NOT_ACTED_ON: &[&str] = &[
    "leaderElection",
    "metrics.enableClusterQueueResources",
    "metrics.customLabels",
    "metrics.localQueueMetrics",
    "pprofBindAddress",
    "controller",
    "tls.cipherSuites",
    "tls.curvePreferences",
    "manageJobsWithoutQueueName",
    "managedJobsNamespaceSelector",
    "waitForPodsReady",
    "clientConnection",
    "integrations",
    "multiKueue",
    "fairSharing",
    "admissionFairSharing",
    "resources",
    "objectRetentionPolicies",
    "visibilityServer",
    "queueVisibility",
];

/// The settings among `set` that nothing acts on.
pub(super) fn not_acted_on(set: &BTreeSet<String>) -> Vec<&'static str> {
    NOT_ACTED_ON.iter().copied().filter(|path| set.contains(*path)).collect()
}

/// Paths of all fields in the first two levels of a file.
pub(super) fn paths(file: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (block, value) in file.as_object().into_iter().flatten() {
        if value.is_null() {
            continue;
        }
        found.insert(block.clone());
        for (field, value) in value.as_object().into_iter().flatten() {
            if !value.is_null() {
                found.insert(format!("{block}.{field}"));
            }
        }
    }
    found
}
