//! Phase one: counts the pods, slices and leaders that fit into every domain, from the leaves up.
//!
//! Input: a [`CountRequest`] and the tree; output: [`CountsByDomain`] and [`ExclusionStats`]. Source:
//! docs/reference/kueue.md §4.11 (Kueue: `fillInCounts`). Cost: leaves times requested resources, in dense arrays.

use std::ops::{Index, IndexMut};

use crate::dense_table::DenseTable;
use crate::ids::DomainId;
use crate::names::Names;
use crate::topology::affinity_score::AffinityScores;
use crate::topology::domain_tree::DomainTree;
use crate::topology::exclusion_stats::{ExclusionStats, LeafExclusion};
use crate::topology::leaf_counts::{
    CountRequest, DomainCounts, FreeCapacity, PodRequests, check_leaf, leaf_counts,
    requests_with_pods,
};
use crate::topology::node_counts::count_nodes;
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::topologies::Topologies;

/// What fits into every domain of a tree, and the affinity score of each.
#[derive(Debug, Default)]
pub(super) struct CountsByDomain {
    counts: DenseTable<DomainId, DomainCounts>,
    pub(super) scores: AffinityScores,
}

impl CountsByDomain {
    fn reset(&mut self, size: usize) {
        self.counts.clear();
        self.counts.reach(size);
        self.scores.clear();
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.counts.clone_from(&other.counts);
        self.scores.copy_from(&other.scores);
    }
}

impl Index<DomainId> for CountsByDomain {
    type Output = DomainCounts;
    fn index(&self, id: DomainId) -> &DomainCounts {
        &self.counts[id]
    }
}

impl IndexMut<DomainId> for CountsByDomain {
    fn index_mut(&mut self, id: DomainId) -> &mut DomainCounts {
        &mut self.counts[id]
    }
}

/// Fills in the counts of all domains of a tree.
pub(super) fn fill_in_counts(
    topologies: &Topologies,
    names: &Names,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    counts: &mut CountsByDomain,
    exclusions: &mut ExclusionStats,
) {
    counts.reset(tree.size());
    exclusions.clear();
    let workers = requests_with_pods(names, count_request.workers);
    let leader = count_request.leader.map(|leader| requests_with_pods(names, leader));
    let requests = PodRequests { workers: &workers, leader: leader.as_deref() };
    for leaf in tree.leaves() {
        let mut count = if count_request.by_node {
            count_nodes(topologies, tree, count_request, leaf, requests, exclusions)
        } else if let Err(exclusion) = check_leaf(topologies, tree, count_request, leaf) {
            // Excluded leaves keep counts of zero.
            exclusions.add(exclusion);
            continue;
        } else {
            let free = FreeCapacity::of(topologies, tree, count_request, leaf);
            let (count, limiting) = leaf_counts(&free, requests);
            if count.pods == 0 {
                limiting
                    .into_iter()
                    .for_each(|resource| exclusions.add(LeafExclusion::Resource(resource)));
            }
            count
        };
        // Slices are counted at their level, from the pods below; here the leaf is that level.
        if tree.lowest() == count_request.request.slice_level {
            count_slices(&mut count, count_request.request.slice_size);
        }
        counts[leaf] = count;
    }
    for level in (0..tree.lowest()).rev() {
        for domain in tree.level(level) {
            counts[domain] =
                sum_children(tree, counts, count_request.request, level, domain, leader.is_some());
        }
    }
}

/// `pods / size`. Slices of one pod are the common case, and divisions dominate the cost of counting.
fn quotient(pods: i64, size: i64) -> i64 {
    if size == 1 { pods } else { pods / size }
}

fn count_slices(count: &mut DomainCounts, size: i64) {
    count.slices = quotient(count.pods, size);
    count.slices_with_leader = quotient(count.pods_with_leader, size);
}

/// Counts of a domain from its children. The leader goes to the child where it costs the fewest pods. If no child
/// has capacity for a required leader, `pods_with_leader` and `slices_with_leader` are zero.
pub(super) fn sum_children(
    tree: &DomainTree,
    counts: &CountsByDomain,
    request: &NormalizedRequest,
    level: usize,
    domain: DomainId,
    has_leader: bool,
) -> DomainCounts {
    let unit = request.layer(level + 1).unwrap_or(1);
    let mut total = DomainCounts::default();
    let mut leader_cost: Option<(i64, i64)> = None;
    for child in tree.children(domain) {
        let count = counts[child];
        // A unit of an inner slice layer does not span children, so remainders are lost (§4.11).
        let whole = |pods: i64| quotient(pods, unit) * unit;
        total.pods += whole(count.pods);
        total.slices += count.slices;
        total.leader = total.leader.max(count.leader);
        // A child without capacity for the leader cannot be the one that bears its cost.
        if !has_leader || count.leader > 0 {
            let pods = whole(count.pods) - whole(count.pods_with_leader);
            let slices = count.slices - count.slices_with_leader;
            leader_cost = Some(
                leader_cost.map_or((pods, slices), |old| (old.0.min(pods), old.1.min(slices))),
            );
        }
    }
    if let Some((pods, slices)) = leader_cost {
        total.pods_with_leader = total.pods - pods;
        total.slices_with_leader = total.slices - slices;
    }
    if level == request.slice_level {
        count_slices(&mut total, request.slice_size);
    }
    total
}

/// Counts a domain again after its descendants changed, and everything below it.
pub(super) fn recount(
    tree: &DomainTree,
    counts: &mut CountsByDomain,
    request: &NormalizedRequest,
    level: usize,
    domain: DomainId,
    has_leader: bool,
) {
    if level == tree.lowest() {
        // The count of a leaf does not derive from children.
        return;
    }
    if level + 1 < tree.lowest() {
        for child in tree.children(domain) {
            recount(tree, counts, request, level + 1, child, has_leader);
        }
    }
    counts[domain] = sum_children(tree, counts, request, level, domain, has_leader);
}
