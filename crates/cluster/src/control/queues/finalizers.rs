//! The finalizer `resource-in-use` of ClusterQueues and ResourceFlavors (docs/reference/kueue.md §1.5).
//!
//! It keeps a deleted queue while Workloads hold quota in it, and a deleted flavor while a ClusterQueue names it.

use std::collections::BTreeMap;

use crds::{
    names::RESOURCE_IN_USE_FINALIZER,
    v1beta2::{ClusterQueue, ResourceFlavor},
};
use k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::{watch::Key, write::Write};
use serde_json::{Value, json};

use super::TrackedQueue;
use crate::control::{
    context::Context,
    outbox::{Intent, Purpose, Subject, Target, Tracked},
    scheduling::Scheduler,
    timers::Reevaluation,
};

/// Removes the finalizer from deleted queues and flavors that nothing uses any more.
pub(super) fn remove_unused(
    cluster_queues: &BTreeMap<Box<str>, TrackedQueue<ClusterQueue>>,
    flavors: &BTreeMap<Box<str>, Tracked<ResourceFlavor>>,
    scheduler: &Scheduler,
    ctx: &mut Context,
) {
    for (name, queue) in cluster_queues {
        let in_use = || scheduler.counts(name).total.reserving > 0;
        release(&queue.tracked, (Subject::ClusterQueue, name), in_use, ctx);
    }
    for (name, flavor) in flavors {
        let in_use = || cluster_queues.values().any(|queue| uses(queue.tracked.object(), name));
        release(flavor, (Subject::ResourceFlavor, name), in_use, ctx);
    }
}

fn uses(queue: &ClusterQueue, flavor: &str) -> bool {
    let groups = queue.spec.resource_groups.iter();
    groups.flat_map(|group| &group.flavors).any(|one| one.name == flavor)
}

/// Removes the finalizer of one object, if it is being deleted and not in use.
fn release<K>(
    tracked: &Tracked<K>,
    (subject, name): (Subject, &str),
    in_use: impl FnOnce() -> bool,
    ctx: &mut Context,
) where
    K: Metadata<Ty = ObjectMeta> + kube::Resource<DynamicType = ()>,
{
    let Some(fields) = without_finalizer(Metadata::metadata(&**tracked.object())) else {
        return;
    };
    let key = Key { namespace: None, name: name.into() };
    let (target, base) = (Target::home(subject, &key), tracked.stamp());
    let waiter = match subject {
        Subject::ClusterQueue => Reevaluation::Queue(name.into()),
        _ => Reevaluation::Queues,
    };
    if in_use() || !ctx.is_free(&target, &base, &Reevaluation::Queues) {
        return;
    }
    let intent = Intent { target, purpose: Purpose::ReleaseUnused, base, waiter };
    ctx.outbox.submit(intent, |purpose, key| Write::merge::<K>(purpose, key, None, &fields));
}

/// The metadata of a deleted object without the finalizer; `None` if it is not deleted or has none.
fn without_finalizer(metadata: &ObjectMeta) -> Option<Value> {
    metadata.deletion_timestamp.as_ref()?;
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    let kept: Vec<&String> =
        finalizers.iter().filter(|one| *one != RESOURCE_IN_USE_FINALIZER).collect();
    (kept.len() < finalizers.len()).then(|| {
        json!({ "metadata": {
            "finalizers": kept,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        } })
    })
}
