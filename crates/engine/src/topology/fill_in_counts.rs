//! Phase one: counts the pods, slices and leaders that fit into every domain, from the leaves up.
//!
//! Input: a [`CountRequest`] and the tree; output: [`CountsByDomain`] and [`ExclusionStats`]. Source:
//! docs/reference/kueue.md §4.11 (Kueue: `fillInCounts`). Cost: leaves times requested resources, in dense arrays.

use std::ops::{Index, IndexMut};

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::dense_table::DenseTable;
use crate::ids::{DomainId, PODS, ResourceId, TopologyNodeId};
use crate::names::Names;
use crate::node_selection::PodToleration;
use crate::spec::PodSetSpec;
use crate::topology::TopologyNodeSpec;
use crate::topology::affinity_score::AffinityScores;
use crate::topology::domain_tree::DomainTree;
use crate::topology::exclusion_stats::{ExclusionStats, LeafExclusion};
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::resource_table::ResourceTable;
use crate::topology::topologies::Topologies;

/// What fits into one domain.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DomainCounts {
    pub(super) pods: i64,
    pub(super) slices: i64,
    /// Leaders that fit: 0 or 1.
    pub(super) leader: i64,
    /// Pods that fit beside the leader.
    pub(super) pods_with_leader: i64,
    pub(super) slices_with_leader: i64,
}

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

/// Input of the count.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountRequest<'a> {
    pub(super) workers: &'a PodSetSpec,
    pub(super) leader: Option<&'a PodSetSpec>,
    pub(super) request: &'a NormalizedRequest,
    pub(super) tolerations: &'a [PodToleration],
    /// Ignores current usage.
    pub(super) empty: bool,
    /// Usage by other pod sets of the same Workload, by row of leaf; `None` if there is none.
    pub(super) taken: Option<&'a ResourceTable>,
    /// Counts only leaves below this domain.
    pub(super) within: Option<DomainId>,
}

/// Requests of one pod, by resource name.
type SinglePodRequests = SmallVec<[(ResourceId, Amount); 4]>;

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
    for leaf in tree.leaves() {
        if let Err(exclusion) = check_leaf(topologies, tree, count_request, leaf) {
            // Excluded leaves keep counts of zero.
            exclusions.add(exclusion);
            continue;
        }
        let free = FreeCapacity::of(topologies, tree, count_request, leaf);
        let (mut count, limiting) = leaf_counts(&free, &workers, leader.as_deref());
        if count.pods == 0 {
            limiting
                .into_iter()
                .for_each(|resource| exclusions.add(LeafExclusion::Resource(resource)));
        }
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

/// Checks whether pods can run on a leaf, whatever its free capacity. Only nodes have taints and labels.
pub(super) fn check_leaf<'a>(
    topologies: &'a Topologies,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    leaf: DomainId,
) -> Result<(), LeafExclusion<'a>> {
    let takes_any = count_request.workers.selection.takes_any_labels();
    // Pods without selector, affinity and tolerations only need the node's labels and taints if it has taints.
    let matters = |&id: &TopologyNodeId| !takes_any || topologies.is_tainted(id);
    let node = tree.node(leaf).filter(matters).and_then(|id| topologies.node(id));
    if let Some(exclusion) = node.and_then(|node| node_exclusion(count_request, node)) {
        return Err(exclusion);
    }
    match count_request.within {
        Some(domain) if !tree.is_below(leaf, domain) => Err(LeafExclusion::OtherDomain),
        _ => Ok(()),
    }
}

/// The reason why the worker pods cannot run on a node.
pub(super) fn node_exclusion<'a>(
    count_request: &CountRequest<'_>,
    node: &'a TopologyNodeSpec,
) -> Option<LeafExclusion<'a>> {
    let selection = &count_request.workers.selection;
    if let Some((_, taint)) = selection.untolerated(&node.taints, count_request.tolerations) {
        Some(LeafExclusion::Taint(taint))
    } else if !selection.selects_node(&node.labels) {
        Some(LeafExclusion::Selector)
    } else if !selection.allows_node(&node.name, &node.labels) {
        Some(LeafExclusion::Affinity)
    } else {
        None
    }
}

/// Free capacity of one leaf, per resource: capacity minus usage minus usage of the Workload's other pod sets.
pub(super) struct FreeCapacity<'a> {
    capacity: &'a [Amount],
    used: &'a [Amount],
    taken: &'a [Amount],
}

impl<'a> FreeCapacity<'a> {
    // Called once per leaf: whether the compiler inlines it unasked depended on unrelated code in the crate.
    #[inline(always)]
    pub(super) fn of(
        topologies: &'a Topologies,
        tree: &'a DomainTree,
        count_request: &CountRequest<'a>,
        leaf: DomainId,
    ) -> Self {
        let row = tree.row(leaf);
        Self {
            capacity: tree.capacity.row(row),
            used: if count_request.empty { &[] } else { topologies.used_row(tree, leaf) },
            taken: count_request.taken.map(|table| table.row(row)).unwrap_or_default(),
        }
    }

    pub(super) fn amount(&self, resource: ResourceId) -> Amount {
        let at = |row: &[Amount]| row.get(resource.index()).copied().unwrap_or_default();
        at(self.capacity) - at(self.used) - at(self.taken)
    }
}

/// Requests of one pod including the implicit resource `pods`, in name order.
fn requests_with_pods(names: &Names, spec: &PodSetSpec) -> SinglePodRequests {
    let requests = spec.takes().iter().copied();
    let mut needs: SinglePodRequests =
        requests.filter(|&(one, amount)| one != PODS && amount > Amount::ZERO).collect();
    needs.push((PODS, Amount(1)));
    needs.sort_by_key(|&(one, _)| names.resources.name(one));
    needs
}

fn leaf_counts(
    free: &FreeCapacity<'_>,
    workers: &[(ResourceId, Amount)],
    leader: Option<&[(ResourceId, Amount)]>,
) -> (DomainCounts, Option<ResourceId>) {
    let (pods, limiting) = pods_that_fit(workers, |resource| free.amount(resource));
    let mut count = DomainCounts { pods, pods_with_leader: pods, ..DomainCounts::default() };
    if let Some(leader) = leader
        // At most one leader is placed, so more than one fitting leader does not matter.
        && pods_that_fit(leader, |resource| free.amount(resource)).0 > 0
    {
        count.leader = 1;
        let request_of_leader = |resource| leader.iter().find(|(one, _)| *one == resource);
        let free_beside_leader = |resource| {
            free.amount(resource)
                - request_of_leader(resource).map_or(Amount::ZERO, |&(_, amount)| amount)
        };
        count.pods_with_leader = pods_that_fit(workers, free_beside_leader).0;
    }
    (count, limiting)
}

/// Number of pods that fit, and the first resource by name that limits it.
fn pods_that_fit(
    needs: &[(ResourceId, Amount)],
    free: impl Fn(ResourceId) -> Amount,
) -> (i64, Option<ResourceId>) {
    let (mut fewest, mut limiting) = (i64::MAX, None);
    for &(resource, amount) in needs {
        let free = free(resource).clip().0;
        // The implicit `pods` always requests 1, and divisions dominate the cost.
        let pods = if amount.0 == 1 { free } else { free / amount.0.max(1) };
        if pods < fewest {
            (fewest, limiting) = (pods, Some(resource));
        }
    }
    (fewest, limiting)
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
