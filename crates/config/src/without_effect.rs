//! Settings that are accepted but have no effect yet. The change that implements a setting removes its line here.

use std::collections::BTreeSet;

use jobs::Kinds;
use serde_json::Value;

/// Paths of such settings. The name of a block covers all of its fields.
const WITHOUT_EFFECT: &[&str] = &[
    "leaderElection.resourceLock",
    "metrics.customLabels",
    "pprofBindAddress",
    "controller",
    "tls.cipherSuites",
    "tls.curvePreferences",
    "clientConnection",
    "integrations.podOptions",
    "multiKueue.externalFrameworks",
    "multiKueue.clusterProfile",
    "admissionFairSharing",
    "resources.deviceClassMappings",
    "visibilityServer",
    "queueVisibility",
];

/// The paths in `set` without effect, and unsupported frameworks.
pub(super) fn settings_without_effect(
    set: &BTreeSet<String>,
    frameworks: &[String],
) -> Vec<String> {
    let settings = WITHOUT_EFFECT.iter().filter(|path| set.contains(**path));
    // A framework is accepted by its name although no kind implements it yet.
    let frameworks =
        frameworks.iter().filter(|name| Kinds::built_in().of_framework(name).is_none());
    settings
        .map(|path| (*path).to_owned())
        .chain(frameworks.map(|name| format!("integrations.frameworks[{name}]")))
        .collect()
}

/// Paths of all fields in the first two levels of a file.
pub(super) fn paths(file: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (block, value) in file.as_object().into_iter().flatten() {
        // A null is an absent setting: templates of manifests leave such lines.
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
