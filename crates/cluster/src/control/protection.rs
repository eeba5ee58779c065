//! The finalizer of queues and flavors: it keeps them while somebody uses them (docs/reference/kueue.md §1.5).

use crds::{names::RESOURCE_IN_USE_FINALIZER, v1beta2::ClusterQueue};
use index::queue_status::ClusterQueueCounts;
use jiff::Timestamp;
use k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::{watch::Key, write::Write};
use serde_json::{Value, json};

use super::{Control, Order, Purpose, Subject, Ticket, due::What, held::Held};

impl Control {
    /// Lets go what is being deleted and not used any more.
    pub(super) fn release_unused(&mut self, now: Timestamp) {
        let Self { queues, index, engine, orders, due, .. } = self;
        for (name, queue) in &mut queues.cluster_queues {
            let in_use = || ClusterQueueCounts::count(index, engine, name).total.reserving > 0;
            let order = release(&mut queue.held, Subject::ClusterQueue, name, in_use, now, due);
            orders.extend(order);
        }
        let users: Vec<&ClusterQueue> =
            queues.cluster_queues.values().map(|queue| &*queue.held.object).collect();
        for (name, held) in &mut queues.resource_flavors {
            let in_use = || users.iter().any(|queue| uses(queue, name));
            let order = release(held, Subject::ResourceFlavor, name, in_use, now, due);
            orders.extend(order);
        }
    }
}

fn uses(queue: &ClusterQueue, flavor: &str) -> bool {
    let groups = queue.spec.resource_groups.iter();
    groups.flat_map(|group| &group.flavors).any(|one| one.name == flavor)
}

/// The write that takes our finalizer off, if the object is going and nobody uses it.
fn release<K>(
    held: &mut Held<K>,
    subject: Subject,
    name: &str,
    in_use: impl FnOnce() -> bool,
    now: Timestamp,
    due: &mut super::due::Due,
) -> Option<Order>
where
    K: Metadata<Ty = ObjectMeta> + kube::Resource<DynamicType = ()>,
{
    let fields = without_finalizer(Metadata::metadata(&*held.object))?;
    if in_use() {
        return None;
    }
    if !held.is_free(now) {
        held.later().into_iter().for_each(|at| due.at(at, What::Queues));
        return None;
    }
    let key = Key { namespace: None, name: name.into() };
    let ticket = Ticket::home(subject, &key, Purpose::ReleaseUnused);
    let order = Order::of(ticket, |purpose, key| Write::merge::<K>(purpose, key, None, &fields))?;
    held.sent();
    Some(order)
}

/// The metadata of an object that is going, without our finalizer; none if it is not going, or has none.
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
