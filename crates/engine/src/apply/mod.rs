//! Applies events to the tables, one function per event, without decisions.
//!
//! An event that frees or adds capacity requests a requeue of its cohort tree; the next cycle carries it out. Source:
//! docs/reference/kueue.md §2.5 (bookkeeping), §3.6 (sources of requeues).

pub(crate) mod cluster_queue;
mod workload;

use crate::admission_fair_sharing::consumption;
use crate::apply::cluster_queue::{cluster_queue, cluster_queue_gone, cohort, local_queue};
use crate::apply::workload::{
    cluster_capacity, released, unhealthy_nodes, workload, workload_gone, write_failed,
};
use crate::dense_table::put;
use crate::event::Event;
use crate::ids::{QueueId, TopologyNodeId};
use crate::reservations::mark_evicted;
use crate::slice_changes;
use crate::state::State;
use crate::topology::TopologyNodeSpec;
use crate::topology::topologies::NodeChange;

/// Applies one event.
pub(crate) fn apply(state: &mut State, event: Event) {
    match event {
        Event::Namespace(id, labels) => {
            put(&mut state.namespaces, id.index(), labels);
            requeue_all(state);
        }
        Event::Flavor(id, spec) => {
            put(&mut state.flavors, id.index(), spec);
            flavors_changed(state);
        }
        Event::Topology(id, spec) => {
            state.topologies.set_topology(id, spec);
            flavors_changed(state);
        }
        Event::Node(id, spec) => node(state, id, spec),
        Event::Check(id, spec) => crate::checks::set_check(state, id, spec),
        Event::Cohort(id, spec) => cohort(state, id, &spec.unwrap_or_default()),
        Event::ClusterQueue(id, Some(spec)) => cluster_queue(state, id, spec),
        Event::ClusterQueue(id, None) => cluster_queue_gone(state, id),
        Event::LocalQueue(id, spec) => local_queue(state, id, spec),
        Event::AdmissionFairSharing(sharing) => consumption::configure(state, sharing),
        Event::ConsumedResources(id, consumed, at) => {
            consumption::set_consumed(state, id, &consumed, at);
        }
        Event::SampleUsage(now) => consumption::sample(state, now),
        Event::Admitted(id, now) => consumption::admitted(state, id, now),
        Event::Workload(id, spec) => {
            let affected = slice_changes::before_change(state, id, Some(&spec));
            workload(state, id, *spec);
            slice_changes::after_change(state, id, &affected);
        }
        Event::WorkloadGone(id) => {
            let affected = slice_changes::before_change(state, id, None);
            workload_gone(state, id);
            slice_changes::after_change(state, id, &affected);
        }
        Event::Evicting(id) => {
            mark_evicted(state, id);
        }
        Event::Released { workload, eligibility, queued_at } => {
            released(state, workload, eligibility, queued_at);
        }
        Event::UnhealthyNodes(id, hosts) => unhealthy_nodes(state, id, hosts),
        Event::ClusterCapacity(key) => cluster_capacity(state, key),
        Event::Written(id) => {
            state.second_passes.written(id);
            state.node_failures.written(id);
        }
        Event::WriteFailed(id) => write_failed(state, id),
    }
}

fn requeue_all(state: &mut State) {
    for index in 0..state.queues.len() {
        if state.queues[index].is_some() {
            state.requeue_cohort_tree(QueueId::from(index));
        }
    }
}

/// A node that changed requeues all ClusterQueues; pods that left a node, the ClusterQueues with that node in a
/// topology. Source: docs/reference/kueue.md §3.6.
fn node(state: &mut State, id: TopologyNodeId, spec: Option<TopologyNodeSpec>) {
    let change = state.topologies.set_node(id, spec);
    if change == NodeChange::Unchanged {
        return;
    }
    state.node_failures.capacity_changed();
    if change == NodeChange::Changed || state.topologies.stale {
        return requeue_all(state);
    }
    for index in 0..state.queues.len() {
        let groups = state.queues[index].iter().flat_map(|queue| queue.groups.iter());
        let mut flavors = groups.flat_map(|group| &group.flavors);
        if flavors.any(|&flavor| state.topologies.has_node(flavor, id)) {
            state.requeue_cohort_tree(QueueId::from(index));
        }
    }
}

fn flavors_changed(state: &mut State) {
    state.changes.flavors_changed();
    state.topologies.stale = true;
    state.node_failures.capacity_changed();
    requeue_all(state);
}
