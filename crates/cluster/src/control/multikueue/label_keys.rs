//! The node labels that workers report by: those that flavors name (docs/reference/dispatch.md §2).

use std::collections::BTreeSet;

use ::jobs::pod_sets_info::FlavorsByName;
use crds::v1alpha1::{ClusterCapacity, LOCAL};
use runtime::{watch::Key, write::Write};
use serde_json::json;

use super::worker::Worker;
use crate::control::{
    context::Context,
    outbox::{Intent, Purpose, Subject},
    timers::Reevaluation,
};

/// The node labels that any flavor names.
pub(super) fn label_keys(flavors: &FlavorsByName) -> Vec<&str> {
    let keys = flavors.values().flat_map(|flavor| flavor.node_labels.keys());
    keys.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Writes the label keys into the ClusterCapacity of a connected worker, if they differ.
pub(super) fn request(worker: &Worker, keys: &[&str], ctx: &mut Context) {
    let Some(capacity) = worker.capacity().filter(|_| worker.connection().active) else {
        return;
    };
    if capacity.object().spec.label_keys == keys {
        return;
    }
    let target = worker.target(Subject::Capacity, &Key { namespace: None, name: LOCAL.into() });
    let (base, waiter) = (capacity.stamp(), Reevaluation::LabelKeys);
    if !ctx.is_free(&target, &base, &waiter) {
        return;
    }
    let fields = json!({ "spec": { "labelKeys": keys } });
    let intent = Intent { target, purpose: Purpose::LabelKeys, base, waiter };
    ctx.outbox.submit(intent, |purpose, key| {
        Write::merge::<ClusterCapacity>(purpose, key, None, &fields)
    });
}
