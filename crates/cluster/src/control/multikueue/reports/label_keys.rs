//! What a manager writes on a worker beside copies: the node labels that it reports by, which are those that flavors name
//! (docs/reference/dispatch.md §2).
//!
//! Every manager of a worker has an entry of its own, by origin. The entry names the manager's cluster: two managers of one origin
//! would take each other's copies for their own, so the second one does not use the worker.

use std::collections::BTreeSet;

use ::jobs::admitted_infos::FlavorsByName;
use crds::v1alpha1::{ClusterCapacity, LOCAL, WorkerManager};
use runtime::{watch::Key, write::Write};
use serde_json::{Value, json};

use crate::control::{
    context::Context,
    multikueue::workers::worker::Worker,
    outbox::{Intent, Purpose, Subject},
    timers::Reevaluation,
};

/// The node labels that any flavor names.
pub(crate) fn label_keys(flavors: &FlavorsByName) -> Vec<&str> {
    let keys = flavors.values().flat_map(|flavor| flavor.node_labels.keys());
    keys.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The manager as workers know it.
pub(crate) struct OwnEntry<'a> {
    pub(crate) origin: &'a str,
    /// The uid of its cluster, once it is known.
    pub(crate) cluster: Option<&'a str>,
    pub(crate) keys: &'a [&'a str],
}

/// The other cluster that uses a worker with this origin.
pub(crate) fn shared_with<'a>(worker: &'a Worker, own: &OwnEntry<'_>) -> Option<&'a str> {
    let cluster = &entry_of(worker, own)?.cluster;
    let other = own.cluster.is_some_and(|own| !cluster.is_empty() && *cluster != *own);
    other.then_some(cluster.as_str())
}

/// Whether a stored ClusterCapacity has the entry of an origin.
pub(crate) fn has_entry(object: &Value, origin: &str) -> bool {
    let mut entries = object["spec"]["managers"].as_array().into_iter().flatten();
    entries.any(|entry| entry["origin"] == origin)
}

fn entry_of<'a>(worker: &'a Worker, own: &OwnEntry<'_>) -> Option<&'a WorkerManager> {
    let mut entries = worker.capacity()?.object().spec.managers.iter();
    entries.find(|entry| *entry.origin == *own.origin)
}

/// Writes the entry of this manager into the ClusterCapacity of a connected worker, if it differs. Entries of others stay, and so
/// does one of another cluster with this origin.
pub(crate) fn request(worker: &Worker, own: &OwnEntry<'_>, ctx: &mut Context) {
    let is_open = worker.connection().active && !worker.drops_entries;
    let Some(capacity) = worker.capacity().filter(|_| is_open) else {
        return;
    };
    let known = entry_of(worker, own);
    let cluster = own.cluster.or(known.map(|entry| &*entry.cluster)).unwrap_or_default();
    let label_keys = own.keys.iter().map(ToString::to_string).collect();
    let entry =
        WorkerManager { origin: own.origin.to_owned(), cluster: cluster.to_owned(), label_keys };
    if known == Some(&entry) || shared_with(worker, own).is_some() {
        return;
    }
    let target = worker.target(Subject::Capacity, &Key { namespace: None, name: LOCAL.into() });
    let (base, waiter) = (capacity.stamp(), Reevaluation::LabelKeysOf(worker.name().into()));
    if !ctx.free_or_wait(&target, &base, &waiter) {
        return;
    }
    let spec = &capacity.object().spec;
    let others = spec.managers.iter().filter(|one| one.origin != entry.origin);
    let managers: Vec<&WorkerManager> = others.chain([&entry]).collect();
    // `labelKeys` stays: a person sets further keys there.
    let fields = json!({
        "metadata": { "resourceVersion": capacity.object().metadata.resource_version },
        "spec": { "managers": managers },
    });
    let intent = Intent { target, purpose: Purpose::LabelKeys, base, waiter };
    ctx.outbox.submit(intent, |purpose, key| {
        Write::merge::<ClusterCapacity>(purpose, key, None, &fields)
    });
}
