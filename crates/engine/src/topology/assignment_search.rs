//! Finds topology assignments: one search per pod set, or per pod set group, in the tree of its flavor.
//!
//! Assignments found for earlier pod sets of the Workload count as usage for later ones. Flavors are searched in
//! name order, pod sets in their own order. A search charges nothing and allocates nothing once its buffers have
//! grown: result and buffers live in [`SearchBuffers`].
//! Source: docs/reference/kueue.md §4.11 (Kueue: `FindTopologyAssignmentsForFlavor`).

use smallvec::SmallVec;

use crate::ids::{DomainId, FlavorId};
use crate::names::Names;
use crate::node_selection::PodToleration;
use crate::quota::layer::QuotaLayer;
use crate::settings::EngineSettings;
use crate::spec::PodSetSpec;
use crate::topology::balanced_placement::{BalanceBuffers, apply_balanced_placement};
use crate::topology::domain_selection::{
    DomainSelection, DomainShare, NotEnoughDomains, SelectionBuffers,
};
use crate::topology::domain_tree::DomainTree;
use crate::topology::exclusion_stats::ExclusionStats;
use crate::topology::fill_in_counts::{CountsByDomain, fill_in_counts};
use crate::topology::leaf_counts::{CountRequest, TolerantPods};
use crate::topology::needed_capacity::PodsToAssign;
use crate::topology::node_counts::{LeafNodes, charge};
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::resource_table::ResourceTable;
use crate::topology::sorted_domains::FillOrder;
use crate::topology::topologies::Topologies;
use crate::topology::{PlacementFailure, affinity_score, slice_layers};
use crate::workloads::equivalence_class::worker_pod_set;

/// Pods of one pod set assigned to one leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct AssignedLeaf {
    pub(super) flavor: FlavorId,
    pub(super) leaf: DomainId,
    pub(super) pod_set: usize,
    pub(super) pods: i64,
}

/// Request of one pod set: its index, its spec, the number of pods to assign.
#[derive(Debug, Clone, Copy)]
pub(super) struct TasPodSetRequest<'a> {
    pub(super) pod_set: usize,
    pub(super) spec: &'a PodSetSpec,
    pub(super) pods: i64,
    pub(super) flavor: FlavorId,
    /// Restricts the search to leaves below this domain of the flavor's tree.
    pub(super) within: Option<DomainId>,
    /// Leaves and pods retained from a replaced slice. They are charged already, so the search does not count them
    /// again unless it assumes an empty topology.
    pub(super) retained: &'a [(DomainId, i64)],
}

/// What a search reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchTables<'a> {
    pub(super) names: &'a Names,
    pub(super) settings: &'a EngineSettings,
    /// Flavors and their tolerations.
    pub(super) quota: &'a QuotaLayer,
    pub(super) topologies: &'a Topologies,
}

/// Result of a search, and buffers kept between searches.
#[derive(Debug, Default)]
pub(crate) struct SearchBuffers {
    /// The assignment found.
    pub(super) assigned: Vec<AssignedLeaf>,
    /// Counts of the last search.
    pub(super) counts: CountsByDomain,
    pub(super) taken: ResourceTable,
    /// Excluded leaves of the last search.
    pub(super) exclusions: ExclusionStats,
    buffers: SelectionBuffers,
    balance: BalanceBuffers,
}

impl SearchBuffers {
    /// Buffers of a search whose Workload already has these assignments.
    pub(super) fn with_assigned(assigned: impl Iterator<Item = AssignedLeaf>) -> Self {
        Self { assigned: assigned.collect(), ..Self::default() }
    }
}

/// Finds assignments for all requests: against current usage, or as if the topology were empty (`empty`).
///
/// # Errors
/// The index of the pod set without an assignment, and the reason.
pub(super) fn find_assignments(
    tables: SearchTables<'_>,
    buffers: &mut SearchBuffers,
    all: &[TasPodSetRequest<'_>],
    empty: bool,
) -> Result<(), (usize, PlacementFailure)> {
    buffers.assigned.clear();
    let mut flavors: SmallVec<[FlavorId; 2]> = SmallVec::new();
    for request in all {
        if !flavors.contains(&request.flavor) {
            flavors.push(request.flavor);
        }
    }
    flavors.sort_by_key(|&flavor| tables.names.flavors.name(flavor));
    for flavor in flavors {
        // A pod set without pods to assign, e.g. with all of them retained, needs no search.
        for first in all.iter().filter(|one| one.flavor == flavor && one.pods > 0) {
            let Some(search) = AssignmentSearch::of(tables, all, first, empty) else {
                continue;
            };
            search.run(buffers).map_err(|reason| (search.workers.pod_set, reason))?;
        }
    }
    Ok(())
}

/// Worker and leader pod set of the group that starts with `first`; `None` if an earlier pod set of the group was
/// searched already.
fn workers_and_leader<'a>(
    all: &'a [TasPodSetRequest<'a>],
    first: &'a TasPodSetRequest<'a>,
) -> Option<(&'a TasPodSetRequest<'a>, Option<&'a TasPodSetRequest<'a>>)> {
    let Some(group) = first.spec.group() else {
        return Some((first, None));
    };
    let is_member = |request: &TasPodSetRequest<'_>| {
        request.spec.group() == Some(group) && request.flavor == first.flavor && request.pods > 0
    };
    let members = all.iter().enumerate().filter(|(_, one)| is_member(one));
    let members: SmallVec<[usize; 2]> = members.map(|(at, _)| at).take(2).collect();
    let Some(workers) = worker_pod_set(&members, |at| all[at].pods) else {
        return Some((first, None));
    };
    let leader = members.iter().find(|&&at| at != workers);
    let is_first = all[members[0]].pod_set == first.pod_set;
    is_first.then(|| (&all[workers], leader.map(|&at| &all[at])))
}

/// One search in one tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct AssignmentSearch<'a> {
    pub(super) tables: SearchTables<'a>,
    pub(super) tree: &'a DomainTree,
    pub(super) all: &'a [TasPodSetRequest<'a>],
    pub(super) workers: &'a TasPodSetRequest<'a>,
    pub(super) leader: Option<&'a TasPodSetRequest<'a>>,
    pub(super) empty: bool,
}

impl<'a> AssignmentSearch<'a> {
    /// The search for the group that starts with `first`; `None` if that group was searched already or the flavor
    /// has no tree.
    pub(super) fn of(
        tables: SearchTables<'a>,
        all: &'a [TasPodSetRequest<'a>],
        first: &'a TasPodSetRequest<'a>,
        empty: bool,
    ) -> Option<Self> {
        let tree = tables.topologies.tree(first.flavor)?;
        let (workers, leader) = workers_and_leader(all, first)?;
        Some(Self { tables, tree, all, workers, leader, empty })
    }

    /// Input of the counting phase. `taken` is the usage of other pod sets of the same Workload.
    pub(super) fn count_request<'t>(
        &'t self,
        request: &'t NormalizedRequest,
        taken: Option<&'t ResourceTable>,
    ) -> CountRequest<'t> {
        CountRequest {
            workers: self.workers.spec,
            leader: self.leader.map(|leader| leader.spec),
            request,
            tolerations: self.tolerations(self.workers.flavor),
            empty: self.empty,
            taken,
            within: self.workers.within,
            by_node: self.is_by_node(),
        }
    }

    fn tolerations(&self, flavor: FlavorId) -> &'a [PodToleration] {
        let flavor = self.tables.quota.flavor(flavor);
        flavor.map(|one| one.tolerations.as_slice()).unwrap_or_default()
    }

    /// Whether leaves aggregate nodes, and pods are counted node by node.
    pub(super) fn is_by_node(&self) -> bool {
        self.tables.settings.tas_node_feasibility_for_all_levels && !self.tree.leaves_are_nodes()
    }

    /// Number of places that pods are counted for: leaves, or their nodes.
    pub(super) fn n_places(&self) -> usize {
        if self.is_by_node() { self.tree.n_aggregated() } else { self.tree.leaves().count() }
    }

    pub(super) fn run(&self, buffers: &mut SearchBuffers) -> Result<(), PlacementFailure> {
        let SearchBuffers { assigned, counts, taken, exclusions, buffers, balance } = buffers;
        let (SearchTables { names, settings, topologies, .. }, tree) = (self.tables, self.tree);
        let request = NormalizedRequest::new(tree, self.workers.spec.topology.as_ref())?;
        let count_request = self.count_request(&request, self.note_taken(assigned, taken));
        // Phase one counts what fits, phase two chooses domains.
        fill_in_counts(topologies, names, tree, &count_request, counts, exclusions);
        if settings.tas_respect_node_affinity_preferred {
            affinity_score::score(topologies, tree, &count_request, counts);
        }
        let to_assign =
            PodsToAssign { pods: self.workers.pods, leaders: i64::from(self.leader.is_some()) };
        let selection =
            DomainSelection { tree, counts, request: &request, order: self.fill_order(&request) };
        // Balanced placement is for preferred topologies (§4.11).
        let may_balance =
            settings.tas_balanced_placement && !request.required && !request.unconstrained;
        let balanced = may_balance
            .then(|| apply_balanced_placement(selection, to_assign, balance, buffers))
            .flatten();
        // Where the pods cannot be balanced, best fit applies.
        if balanced.is_none() {
            selection
                .select(to_assign, buffers)
                .map_err(|shortage| self.failure(&request, counts, exclusions, shortage))?;
        }
        self.record(&buffers.shares, assigned);
        Ok(())
    }

    /// LeastFreeCapacity is for unconstrained requests only (§4.11, gate TASProfileMixed).
    fn fill_order(&self, request: &NormalizedRequest) -> FillOrder {
        if self.tables.settings.tas_profile_mixed && request.unconstrained {
            FillOrder::LeastFreeCapacity
        } else {
            FillOrder::BestFit
        }
    }

    /// Records the pods and the leader of each domain's share.
    fn record(&self, shares: &[DomainShare], assigned: &mut Vec<AssignedLeaf>) {
        for share in shares {
            let leaf = |of: &TasPodSetRequest<'_>, pods| AssignedLeaf {
                flavor: of.flavor,
                leaf: share.domain,
                pod_set: of.pod_set,
                pods,
            };
            assigned.extend((share.pods > 0).then(|| leaf(self.workers, share.pods)));
            let leader = self.leader.filter(|_| share.leaders > 0);
            assigned.extend(leader.map(|leader| leaf(leader, share.leaders)));
        }
    }

    /// Usage of this tree's nodes by other pod sets of the Workload. A search that assumes an empty topology also
    /// counts retained pods, because they keep their leaves. `None` if there is no such usage.
    pub(super) fn note_taken<'t>(
        &self,
        assigned: &[AssignedLeaf],
        taken: &'t mut ResourceTable,
    ) -> Option<&'t ResourceTable> {
        let retained = self.empty && self.all.iter().any(|one| !one.retained.is_empty());
        if assigned.is_empty() && !retained {
            return None;
        }
        // Kept apart from usage: a search charges nothing.
        let n_rows = self.tree.leaves().count() + self.tree.n_aggregated();
        taken.reset(n_rows, self.tables.names.resources.len());
        for one in assigned {
            let request = self.all.iter().find(|request| request.pod_set == one.pod_set);
            request.into_iter().for_each(|request| self.take(taken, request, one.leaf, one.pods));
        }
        for request in self.all.iter().filter(|_| retained) {
            request.retained.iter().for_each(|&(leaf, pods)| self.take(taken, request, leaf, pods));
        }
        Some(taken)
    }

    fn take(
        &self,
        taken: &mut ResourceTable,
        request: &TasPodSetRequest<'_>,
        leaf: DomainId,
        pods: i64,
    ) {
        let Some(leaf) = self.leaf_here(request.flavor, leaf) else {
            return;
        };
        charge(taken, self.tree.row(leaf), request.spec, pods);
        if self.is_by_node() {
            let SearchTables { names, topologies, .. } = self.tables;
            let tolerations = self.tolerations(request.flavor);
            let of_pod_set = TolerantPods { spec: request.spec, tolerations };
            LeafNodes { topologies, tree: self.tree, leaf }.take(names, of_pod_set, pods, taken);
        }
    }

    /// The leaf of this tree that corresponds to a leaf of another flavor's tree. Flavors may share nodes; leaves
    /// that aggregate nodes are never shared.
    pub(super) fn leaf_here(&self, flavor: FlavorId, leaf: DomainId) -> Option<DomainId> {
        if flavor == self.workers.flavor {
            return Some(leaf);
        }
        // Another flavor counts where its tree has the same node.
        let node = self.tables.topologies.tree(flavor).and_then(|tree| tree.node(leaf));
        node.and_then(|node| self.tree.node_leaf(node))
    }

    fn failure(
        &self,
        request: &NormalizedRequest,
        counts: &CountsByDomain,
        exclusions: &ExclusionStats,
        shortage: NotEnoughDomains,
    ) -> PlacementFailure {
        // A negative count says that the level has no domain.
        let Some(level) = self.tree.levels.get(shortage.level).filter(|_| shortage.fit < 0) else {
            let names = self.tables.names;
            let excluded = exclusions.messages(names);
            let topology = names.topologies.name(self.tree.topology).into();
            let leaves = self.n_places();
            if !request.layers.is_empty() {
                let fits =
                    slice_layers::fitting_by_layer(self.tree, counts, self.workers, shortage.level);
                return PlacementFailure::SliceLayersNotFit { topology, fits, leaves, excluded };
            }
            return PlacementFailure::NotFit {
                topology,
                fit: shortage.fit,
                requested: request.slices(self.workers.pods),
                slices: request.slice_size > 1,
                leaves,
                excluded,
            };
        };
        PlacementFailure::NoDomainsAtLevel { level: level.clone() }
    }
}
