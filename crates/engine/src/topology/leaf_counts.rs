//! What fits into one leaf: whether pods can run there, and how many its free capacity takes.
//!
//! Source: docs/reference/kueue.md §4.11.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::ids::{DomainId, PODS, ResourceId, TopologyNodeId};
use crate::names::Names;
use crate::node_selection::PodToleration;
use crate::spec::PodSetSpec;
use crate::topology::TopologyNodeSpec;
use crate::topology::aggregated_nodes::AggregatedNode;
use crate::topology::domain_tree::DomainTree;
use crate::topology::exclusion_stats::LeafExclusion;
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

/// Input of the count.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountRequest<'a> {
    pub(super) workers: &'a PodSetSpec,
    pub(super) leader: Option<&'a PodSetSpec>,
    pub(super) request: &'a NormalizedRequest,
    pub(super) tolerations: &'a [PodToleration],
    /// Ignores current usage.
    pub(super) empty: bool,
    /// Usage by other pod sets of the same Workload, by row of leaf, then by row of aggregated node; `None` if there is
    /// none.
    pub(super) taken: Option<&'a ResourceTable>,
    /// Counts only leaves below this domain.
    pub(super) within: Option<DomainId>,
    /// Leaves aggregate nodes, and pods are counted node by node.
    pub(super) by_node: bool,
}

/// Pods of a pod set, and the tolerations that they get from their flavor.
#[derive(Debug, Clone, Copy)]
pub(super) struct TolerantPods<'a> {
    pub(super) spec: &'a PodSetSpec,
    pub(super) tolerations: &'a [PodToleration],
}

impl<'a> CountRequest<'a> {
    /// The worker pods.
    pub(super) fn pods(&self) -> TolerantPods<'a> {
        TolerantPods { spec: self.workers, tolerations: self.tolerations }
    }
}

/// Requests of one pod, by resource name.
type SinglePodRequests = SmallVec<[(ResourceId, Amount); 4]>;

/// Requests of one worker pod, and of the leader if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodRequests<'a> {
    pub(super) workers: &'a [(ResourceId, Amount)],
    pub(super) leader: Option<&'a [(ResourceId, Amount)]>,
}

/// Checks whether pods can run on a leaf, whatever its free capacity. Only nodes have taints and labels.
pub(super) fn check_leaf<'a>(
    topologies: &'a Topologies,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    leaf: DomainId,
) -> Result<(), LeafExclusion<'a>> {
    let node = tree.node(leaf);
    // The leader of a group is not asked, as in upstream's recorded decisions.
    if let Some(exclusion) = node.and_then(|id| check_node(topologies, count_request.pods(), id)) {
        return Err(exclusion);
    }
    match count_request.within {
        Some(domain) if !tree.is_below(leaf, domain) => Err(LeafExclusion::OtherDomain),
        _ => Ok(()),
    }
}

/// The reason why the worker pods cannot run on a node of this id.
pub(super) fn check_node<'a>(
    topologies: &'a Topologies,
    pods: TolerantPods<'_>,
    id: TopologyNodeId,
) -> Option<LeafExclusion<'a>> {
    let takes_any = pods.spec.selection.takes_any_labels();
    // Pods without selector, affinity and tolerations only need the node's labels and taints if it has taints.
    let matters = !takes_any || topologies.is_tainted(id);
    let node = topologies.node(id).filter(|_| matters)?;
    node_exclusion(pods, node)
}

/// The reason why the worker pods cannot run on a node.
pub(super) fn node_exclusion<'a>(
    pods: TolerantPods<'_>,
    node: &'a TopologyNodeSpec,
) -> Option<LeafExclusion<'a>> {
    let selection = &pods.spec.selection;
    if let Some((_, taint)) = selection.untolerated(&node.taints, pods.tolerations) {
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

    /// Of a node that its leaf aggregates with others: what is used of the leaf is of unknown nodes.
    pub(super) fn of_node(node: &AggregatedNode<'a>, taken: Option<&'a ResourceTable>) -> Self {
        let taken = taken.map(|table| table.row(node.row)).unwrap_or_default();
        Self { capacity: node.capacity, used: &[], taken }
    }

    pub(super) fn amount(&self, resource: ResourceId) -> Amount {
        let at = |row: &[Amount]| row.get(resource.index()).copied().unwrap_or_default();
        at(self.capacity) - at(self.used) - at(self.taken)
    }
}

/// Requests of one pod including the implicit resource `pods`, in name order.
pub(super) fn requests_with_pods(names: &Names, spec: &PodSetSpec) -> SinglePodRequests {
    let requests = spec.takes().iter().copied();
    let mut needs: SinglePodRequests =
        requests.filter(|&(one, amount)| one != PODS && amount > Amount::ZERO).collect();
    needs.push((PODS, Amount(1)));
    needs.sort_by_key(|&(one, _)| names.resources.name(one));
    needs
}

/// What fits into a free capacity, and the resource that limits the pods.
pub(super) fn leaf_counts(
    free: &FreeCapacity<'_>,
    PodRequests { workers, leader }: PodRequests<'_>,
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
