//! Applies events to the tables, one function per event, without decisions.
//!
//! An event that frees or adds capacity requests a requeue of its cohort tree; the next cycle carries it out. Source:
//! docs/reference/kueue.md §2.5 (bookkeeping), §3.6 (sources of requeues).

pub(crate) mod cluster_queue;
mod workload;

use crate::admission_fair_sharing::consumption;
use crate::apply::cluster_queue::{cluster_queue, cluster_queue_gone, cohort, local_queue};
use crate::apply::workload::{
    cluster_capacity, released, reservation_withdrawn, unhealthy_nodes, workload, workload_gone,
    written,
};
use crate::checks::rules;
use crate::event::Event;
use crate::ids::{CheckId, NamespaceId, TopologyNodeId};
use crate::queues::cluster_queue::ClusterQueueRecord;
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::reservations::mark_evicted;
use crate::spec::{CheckSpec, Labels};
use crate::state::State;
use crate::topology::TopologyNodeSpec;
use crate::topology::layer::TopologyLayer;
use crate::topology::topologies::NodeChange;

/// Applies one event.
pub(crate) fn apply(state: &mut State, event: Event) {
    let State { settings, quota, workloads, topology, queues, .. } = state;
    match event {
        Event::Namespace(id, labels) => namespace(queues, id, labels),
        Event::Flavor(id, spec) => {
            quota.set_flavor(id, spec);
            flavors_changed(quota, topology, queues);
        }
        Event::Topology(id, spec) => {
            topology.set_topology(id, spec);
            flavors_changed(quota, topology, queues);
        }
        Event::Node(id, spec) => node(topology, queues, id, spec),
        Event::Check(id, spec) => check(quota, queues, id, spec),
        Event::Cohort(id, spec) => cohort(quota, queues, id, spec),
        Event::ClusterQueue(id, Some(spec)) => cluster_queue(quota, queues, id, spec),
        Event::ClusterQueue(id, None) => cluster_queue_gone(quota, queues, id),
        Event::LocalQueue(id, spec) => local_queue(quota, workloads, queues, id, spec),
        Event::AdmissionFairSharing(sharing) => consumption::configure(workloads, queues, sharing),
        Event::ConsumedResources(id, used, at) => consumption::set_consumed(queues, id, &used, at),
        Event::SampleUsage(now) => consumption::sample(quota, workloads, queues, now),
        Event::Admitted(id, now) => consumption::admitted(quota, workloads, queues, id, now),
        Event::Workload(id, spec) => workload(state, id, *spec),
        Event::WorkloadGone(id) => workload_gone(state, id),
        Event::Evicting(id) => mark_evicted(state, id),
        Event::Released { workload, eligibility, queued_at } => {
            released(state, workload, eligibility, queued_at);
        }
        Event::UnhealthyNodes(id, hosts) => {
            unhealthy_nodes(settings, workloads, topology, id, hosts);
        }
        Event::ClusterCapacity(key) => cluster_capacity(workloads, queues, key),
        Event::RefreshMessages => queues.refresh_predicted(quota.tree()),
        Event::Written(id) => written(workloads, topology, id),
        Event::ReservationWithdrawn(id) => reservation_withdrawn(state, id),
    }
}

/// Which selectors match the new labels for the first time is not tracked, so every cohort tree is requeued. Source:
/// docs/reference/kueue.md §3.6.
fn namespace(queues: &mut QueueLayer, id: NamespaceId, labels: Option<Labels>) {
    queues.set_namespace(id, labels);
    requeue_all(queues);
}

fn requeue_all(queues: &mut QueueLayer) {
    queues.requeue_where(|_| true);
}

/// A node that changed requeues all ClusterQueues; pods that left a node, the ClusterQueues with that node in a
/// topology. Source: docs/reference/kueue.md §3.6.
fn node(
    topology: &mut TopologyLayer,
    queues: &mut QueueLayer,
    id: TopologyNodeId,
    spec: Option<TopologyNodeSpec>,
) {
    let change = topology.set_node(id, spec);
    if change == NodeChange::Unchanged {
        return;
    }
    topology.node_failures_mut().capacity_changed();
    // A head that waits for pods is active anyway.
    if change == NodeChange::LeavingChanged {
        return;
    }
    // Stale trees do not say which flavors have the node.
    if change == NodeChange::Changed || topology.topologies().is_stale() {
        return requeue_all(queues);
    }
    let topologies = topology.topologies();
    queues.requeue_where(|queue| {
        let mut flavors = queue.groups.iter().flat_map(|group| &group.flavors);
        flavors.any(|&flavor| topologies.has_node(flavor, id))
    });
}

/// Updates a check. ClusterQueues that use it may become active, and are requeued.
fn check(quota: &mut QuotaLayer, queues: &mut QueueLayer, id: CheckId, check: Option<CheckSpec>) {
    // A check that is observed again without a change requeues nothing.
    if queues.check(id) == check {
        return;
    }
    queues.set_check(id, check);
    quota.request_rebuild();
    let uses = |queue: &ClusterQueueRecord| rules(queue).iter().any(|rule| rule.check == id);
    queues.requeue_where(uses);
    queues.note_configuration_where(uses);
}

fn flavors_changed(quota: &mut QuotaLayer, topology: &mut TopologyLayer, queues: &mut QueueLayer) {
    quota.note_flavor_change();
    topology.mark_stale();
    topology.node_failures_mut().capacity_changed();
    requeue_all(queues);
}
