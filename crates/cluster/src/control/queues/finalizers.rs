//! The finalizer `resource-in-use` (docs/reference/kueue.md §1.5).
//!
//! It keeps a deleted ClusterQueue while Workloads hold quota in it, a deleted flavor or check while a ClusterQueue names it,
//! and a deleted Topology while a flavor names it. Webhooks add it to queues and flavors; checks and topologies have none, so
//! it is added here.

use crds::{
    names::RESOURCE_IN_USE_FINALIZER,
    v1beta2::{AdmissionCheck, ClusterQueue, ResourceFlavor, Topology},
};
use k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::{watch::Key, write::Write};
use serde::Serialize;
use serde_json::{Value, json};

use super::TrackedQueue;
use crate::control::{
    context::Context,
    key_map::KeyMap,
    outbox::{Intent, Purpose, Subject, Target, Tracked},
    scheduling::Scheduler,
    timers::Reevaluation,
};

/// The objects that the finalizer protects.
pub(super) struct ProtectedObjects<'a> {
    pub(super) cluster_queues: &'a KeyMap<Box<str>, TrackedQueue<ClusterQueue>>,
    pub(super) flavors: &'a KeyMap<Box<str>, Tracked<ResourceFlavor>>,
    pub(super) checks: &'a KeyMap<Box<str>, Tracked<AdmissionCheck>>,
    pub(super) topologies: &'a KeyMap<Box<str>, Tracked<Topology>>,
}

impl ProtectedObjects<'_> {
    /// Removes the finalizer from deleted objects that nothing uses any more, and adds it to checks and topologies.
    pub(super) fn evaluate(&self, scheduler: &Scheduler, ctx: &mut Context) {
        let queues = || self.cluster_queues.values().map(|queue| &**queue.tracked.object());
        for (name, queue) in self.cluster_queues {
            // Evaluated for a deleted queue only: the count walks over all of its Workloads.
            let in_use = || scheduler.counts(name).total.reserving > 0;
            release(&queue.tracked, (Subject::ClusterQueue, name), in_use, ctx);
        }
        for (name, flavor) in self.flavors {
            let in_use = || queues().any(|queue| uses_flavor(queue, name));
            release(flavor, (Subject::ResourceFlavor, name), in_use, ctx);
        }
        for (name, check) in self.checks {
            protect(check, (Subject::AdmissionCheck, name), ctx);
            let in_use = || queues().any(|queue| uses_check(queue, name));
            release(check, (Subject::AdmissionCheck, name), in_use, ctx);
        }
        for (name, topology) in self.topologies {
            protect(topology, (Subject::Topology, name), ctx);
            let flavors = || self.flavors.values().map(|flavor| &flavor.object().spec);
            let in_use = || flavors().any(|one| one.topology_name.as_deref() == Some(&**name));
            release(topology, (Subject::Topology, name), in_use, ctx);
        }
    }
}

/// Whether the finalizer of an object is to be added or removed.
pub(super) fn concerns(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() || with_finalizer(metadata).is_some()
}

fn uses_flavor(queue: &ClusterQueue, flavor: &str) -> bool {
    let groups = queue.spec.resource_groups.iter();
    groups.flat_map(|group| &group.flavors).any(|one| one.name == flavor)
}

fn uses_check(queue: &ClusterQueue, check: &str) -> bool {
    let strategy = queue.spec.admission_checks_strategy.iter();
    strategy.flat_map(|one| &one.admission_checks).any(|one| one.name == check)
}

/// Adds the finalizer to an object that is not being deleted.
fn protect<K>(tracked: &Tracked<K>, (subject, name): (Subject, &str), ctx: &mut Context)
where
    K: Metadata<Ty = ObjectMeta> + kube::Resource<DynamicType = ()>,
{
    let Some(fields) = with_finalizer(Metadata::metadata(&**tracked.object())) else {
        return;
    };
    write(tracked, (subject, name), &fields, ctx);
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
    if !in_use() {
        write(tracked, (subject, name), &fields, ctx);
    }
}

/// Writes the metadata, if the object may be written now.
fn write<K>(
    tracked: &Tracked<K>,
    (subject, name): (Subject, &str),
    fields: &Value,
    ctx: &mut Context,
) where
    K: Metadata<Ty = ObjectMeta> + kube::Resource<DynamicType = ()>,
{
    let key = Key { namespace: None, name: name.into() };
    // Its answer marks one queue. Marking all would count every Workload again.
    let waiter = match subject {
        Subject::ClusterQueue => Reevaluation::Queue(name.into()),
        _ => Reevaluation::Queues,
    };
    let (target, base) = (Target::home(subject, &key), tracked.stamp());
    if !ctx.free_or_wait(&target, &base, &Reevaluation::Queues) {
        return;
    }
    let intent = Intent { target, purpose: Purpose::ReleaseUnused, base, waiter };
    ctx.outbox.submit(intent, |purpose, key| Write::merge::<K>(purpose, key, None, fields));
}

/// The metadata of an object that is not being deleted with the finalizer; `None` if it has it.
fn with_finalizer(metadata: &ObjectMeta) -> Option<Value> {
    let known = metadata.finalizers.as_deref().unwrap_or_default();
    let has = known.iter().any(|one| one == RESOURCE_IN_USE_FINALIZER);
    (metadata.deletion_timestamp.is_none() && !has).then(|| {
        let all: Vec<&str> =
            known.iter().map(String::as_str).chain([RESOURCE_IN_USE_FINALIZER]).collect();
        patch(metadata, &all)
    })
}

/// The metadata of a deleted object without the finalizer; `None` if it is not deleted or has none.
fn without_finalizer(metadata: &ObjectMeta) -> Option<Value> {
    metadata.deletion_timestamp.as_ref()?;
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    let kept: Vec<&String> =
        finalizers.iter().filter(|one| *one != RESOURCE_IN_USE_FINALIZER).collect();
    (kept.len() < finalizers.len()).then(|| patch(metadata, &kept))
}

fn patch(metadata: &ObjectMeta, finalizers: &impl Serialize) -> Value {
    // The list is replaced as a whole. With the resourceVersion, finalizers that others added meanwhile stay.
    json!({ "metadata": {
        "finalizers": finalizers,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    } })
}
