//! What fits into a leaf that aggregates nodes, counted node by node. Gate TASNodeFeasibilityForAllLevels.
//!
//! A pod needs one node that takes it. On which nodes of the leaf the pods of other Workloads run is unknown, so that a node is
//! counted as if none of them ran there; what they use bounds the leaf as a whole. Earlier pod sets of the same Workload take nodes
//! by best fit. Source: docs/reference/kueue.md §4.11. Cost: nodes times
//! requested resources.

use std::cmp::Reverse;

use crate::amount::Amount;
use crate::ids::{DomainId, PODS, ResourceId};
use crate::names::Names;
use crate::spec::PodSetSpec;
use crate::topology::aggregated_nodes::AggregatedNode;
use crate::topology::domain_tree::DomainTree;
use crate::topology::exclusion_stats::{ExclusionStats, LeafExclusion};
use crate::topology::leaf_counts::{
    CountRequest, DomainCounts, FreeCapacity, PodRequests, TolerantPods, check_leaf, check_node,
    leaf_counts, requests_with_pods,
};
use crate::topology::resource_table::ResourceTable;
use crate::topology::topologies::Topologies;

/// Counts of a leaf from those of its nodes. A node without room, or that takes no such pods, is excluded as a leaf would be.
pub(super) fn count_nodes(
    topologies: &Topologies,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    leaf: DomainId,
    requests: PodRequests<'_>,
    exclusions: &mut ExclusionStats,
) -> DomainCounts {
    let mut total = DomainCounts::default();
    let mut leader_cost: Option<i64> = None;
    for node in tree.aggregated(leaf) {
        if let Some(exclusion) = check_node(topologies, count_request.pods(), node.id) {
            exclusions.add(exclusion);
            continue;
        }
        let (count, limiting) =
            leaf_counts(&FreeCapacity::of_node(&node, count_request.taken), requests);
        if let Some(resource) = limiting.filter(|_| count.pods == 0) {
            exclusions.add(LeafExclusion::Resource(resource));
        }
        total.pods += count.pods;
        total.leader = total.leader.max(count.leader);
        // The leader goes to the node where it costs the fewest pods.
        if requests.leader.is_none() || count.leader > 0 {
            let cost = count.pods - count.pods_with_leader;
            leader_cost = Some(leader_cost.map_or(cost, |least| least.min(cost)));
        }
    }
    total.pods_with_leader = leader_cost.map_or(0, |cost| total.pods - cost);
    let (bound, _) =
        leaf_counts(&FreeCapacity::of(topologies, tree, count_request, leaf), requests);
    DomainCounts {
        pods: total.pods.min(bound.pods),
        leader: total.leader.min(bound.leader),
        pods_with_leader: total.pods_with_leader.min(bound.pods_with_leader),
        ..total
    }
}

/// Whether pods can run on a leaf, whatever its free capacity.
pub(super) fn is_open(
    topologies: &Topologies,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    leaf: DomainId,
) -> bool {
    check_leaf(topologies, tree, count_request, leaf).is_ok()
        && (!count_request.by_node
            || LeafNodes { topologies, tree, leaf }.open(count_request.pods()).next().is_some())
}

/// Free capacity of a leaf for pods of one request, and the largest part of it where one pod may run.
pub(super) fn free_for_pods(
    topologies: &Topologies,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    leaf: DomainId,
    resource: ResourceId,
) -> (Amount, Amount) {
    let of_leaf = FreeCapacity::of(topologies, tree, count_request, leaf).amount(resource).clip();
    if !count_request.by_node {
        return (of_leaf, of_leaf);
    }
    let nodes = LeafNodes { topologies, tree, leaf }.open(count_request.pods());
    let free = |node| FreeCapacity::of_node(&node, count_request.taken).amount(resource).clip();
    let nodes = nodes.map(free);
    let (sum, largest) = nodes
        .fold((Amount::ZERO, Amount::ZERO), |(sum, largest), one| (sum + one, largest.max(one)));
    (sum.min(of_leaf), largest.min(of_leaf))
}

/// The nodes of one leaf.
#[derive(Clone, Copy)]
pub(super) struct LeafNodes<'a> {
    pub(super) topologies: &'a Topologies,
    pub(super) tree: &'a DomainTree,
    pub(super) leaf: DomainId,
}

impl<'a> LeafNodes<'a> {
    /// Those that take such pods.
    fn open(self, pods: TolerantPods<'a>) -> impl Iterator<Item = AggregatedNode<'a>> {
        let Self { topologies, tree, leaf } = self;
        tree.aggregated(leaf).filter(move |node| check_node(topologies, pods, node.id).is_none())
    }

    /// Charges pods of one pod set: as long as one node takes all that are left, the smallest such node, otherwise the largest.
    /// Pods without a node are charged to none.
    pub(super) fn take(
        self,
        names: &Names,
        pods: TolerantPods<'_>,
        count: i64,
        taken: &mut ResourceTable,
    ) {
        let workers = requests_with_pods(names, pods.spec);
        let requests = PodRequests { workers: &workers, leader: None };
        let room = |node: AggregatedNode<'_>| {
            (leaf_counts(&FreeCapacity::of_node(&node, Some(taken)), requests).0.pods, node.row)
        };
        let mut nodes: Vec<(i64, usize)> =
            self.open(pods).map(room).filter(|&(room, _)| room > 0).collect();
        nodes.sort_by_key(|&(room, row)| (Reverse(room), row));
        let mut left = count;
        while left > 0 && !nodes.is_empty() {
            let smallest = nodes.iter().rposition(|&(room, _)| room >= left);
            let (room, row) = nodes.remove(smallest.unwrap_or_default());
            charge(taken, row, pods.spec, room.min(left));
            left -= room;
        }
    }
}

/// Charges pods of a pod set to a row.
pub(super) fn charge(taken: &mut ResourceTable, row: usize, spec: &PodSetSpec, pods: i64) {
    for &(resource, amount) in spec.takes() {
        taken.add(row, resource, amount.times(pods));
    }
    taken.add(row, PODS, Amount(pods));
}
