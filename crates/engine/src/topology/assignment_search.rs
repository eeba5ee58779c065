//! Finding places: one search per pod set or group of them, in the tree of its flavor.
//!
//! What earlier pod sets of the Workload were just given counts against later ones. Flavors come in the order of their
//! names, pod sets in their own. Nothing is charged and nothing allocated: results and buffers stay in [`SearchBuffers`].

use smallvec::SmallVec;

use crate::ids::{DomainId, FlavorId};
use crate::spec::PodSetSpec;
use crate::state::{PODS, State};
use crate::topology::balanced_placement::{BalanceBuffers, apply_balanced_placement};
use crate::topology::domain_selection::{
    NotEnoughDomains, PodsToAssign, SelectionBuffers, select_domains,
};
use crate::topology::domain_tree::DomainTree;
use crate::topology::exclusion_stats::ExclusionStats;
use crate::topology::fill_in_counts::{CountRequest, CountsByDomain, fill_in_counts};
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::resource_table::ResourceTable;
use crate::topology::topologies::Topologies;
use crate::topology::{PlacementFailure, affinity_score, slice_layers};

/// Pods of one pod set that were given a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct AssignedLeaf {
    pub(super) flavor: FlavorId,
    pub(super) leaf: DomainId,
    pub(super) pod_set: usize,
    pub(super) pods: i64,
}

/// What is asked of one pod set: its place among the others, what it is, how many pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct TasPodSetRequest<'a> {
    pub(super) pod_set: usize,
    pub(super) spec: &'a PodSetSpec,
    pub(super) pods: i64,
    pub(super) flavor: FlavorId,
    /// Only below this domain of the flavor's tree.
    pub(super) within: Option<DomainId>,
    /// Pods that have places already, and keep them. In use they are charged.
    pub(super) retained: &'a [(DomainId, i64)],
}

/// The result of a search, and buffers kept between searches.
#[derive(Debug, Default)]
pub(crate) struct SearchBuffers {
    /// The result.
    pub(super) placed: Vec<AssignedLeaf>,
    /// What the last search counted.
    pub(super) counts: CountsByDomain,
    pub(super) taken: ResourceTable,
    /// Why the last search found nobody a place at a leaf.
    pub(super) exclusions: ExclusionStats,
    buffers: SelectionBuffers,
    balance: BalanceBuffers,
}

impl SearchBuffers {
    /// SelectionBuffers of a search beside those who were given something.
    pub(super) fn beside(placed: impl Iterator<Item = AssignedLeaf>) -> Self {
        Self { placed: placed.collect(), ..Self::default() }
    }
}

/// A copy grows buffers of its own.
impl Clone for SearchBuffers {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Finds places for everybody wanted, as things are or as if nothing were in use. `Err` names the pod set for which there
/// are none.
pub(super) fn find(
    state: &State,
    scratch: &mut SearchBuffers,
    all: &[TasPodSetRequest<'_>],
    empty: bool,
) -> Result<(), (usize, PlacementFailure)> {
    scratch.placed.clear();
    let mut flavors: SmallVec<[FlavorId; 2]> = SmallVec::new();
    for wanted in all {
        if !flavors.contains(&wanted.flavor) {
            flavors.push(wanted.flavor);
        }
    }
    flavors.sort_by_key(|&flavor| state.names.flavors.name(flavor));
    for flavor in flavors {
        for first in all.iter().filter(|one| one.flavor == flavor && one.pods > 0) {
            let Some(search) = AssignmentSearch::of(state, &state.topologies, all, first, empty)
            else {
                continue;
            };
            search.run(scratch).map_err(|reason| (search.workers.pod_set, reason))?;
        }
    }
    Ok(())
}

/// Workers and leader of the group that starts with `first`; `None` if the group was placed already.
fn roles<'a>(
    all: &'a [TasPodSetRequest<'a>],
    first: &'a TasPodSetRequest<'a>,
) -> Option<(&'a TasPodSetRequest<'a>, Option<&'a TasPodSetRequest<'a>>)> {
    fn group<'a>(one: &TasPodSetRequest<'a>) -> Option<&'a str> {
        one.spec.topology.as_ref()?.group.as_deref()
    }
    let Some(name) = group(first) else {
        return Some((first, None));
    };
    let alike = |one: &&TasPodSetRequest<'_>| {
        group(one) == Some(name) && one.flavor == first.flavor && one.pods > 0
    };
    let mut members = all.iter().filter(alike);
    match (members.next(), members.next()) {
        (Some(one), _) if one.pod_set != first.pod_set => None,
        // Of two pod sets of the same size the later one leads, whatever they are called.
        (Some(one), Some(other)) if one.pods >= other.pods => Some((one, Some(other))),
        (Some(one), Some(other)) => Some((other, Some(one))),
        _ => Some((first, None)),
    }
}

/// One search in one tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct AssignmentSearch<'a> {
    pub(super) state: &'a State,
    pub(super) topologies: &'a Topologies,
    pub(super) tree: &'a DomainTree,
    pub(super) all: &'a [TasPodSetRequest<'a>],
    pub(super) workers: &'a TasPodSetRequest<'a>,
    pub(super) leader: Option<&'a TasPodSetRequest<'a>>,
    pub(super) empty: bool,
}

impl<'a> AssignmentSearch<'a> {
    /// The search for the group that starts with `first`; `None` if it was placed already, or its flavor has no tree.
    pub(super) fn of(
        state: &'a State,
        topologies: &'a Topologies,
        all: &'a [TasPodSetRequest<'a>],
        first: &'a TasPodSetRequest<'a>,
        empty: bool,
    ) -> Option<Self> {
        let tree = topologies.tree(first.flavor)?;
        let (workers, leader) = roles(all, first)?;
        Some(Self { state, topologies, tree, all, workers, leader, empty })
    }

    /// What is asked, of what is left beside `taken`.
    pub(super) fn count_request<'t>(
        &'t self,
        request: &'t NormalizedRequest,
        taken: Option<&'t ResourceTable>,
    ) -> CountRequest<'t> {
        let tolerations = self.state.flavor(self.workers.flavor);
        CountRequest {
            workers: self.workers.spec,
            leader: self.leader.map(|leader| leader.spec),
            request,
            tolerations: tolerations.map(|one| one.tolerations.as_slice()).unwrap_or_default(),
            empty: self.empty,
            taken,
            within: self.workers.within,
        }
    }

    pub(super) fn run(&self, scratch: &mut SearchBuffers) -> Result<(), PlacementFailure> {
        let SearchBuffers { placed, counts, taken, exclusions, buffers, balance } = scratch;
        let (state, tree) = (self.state, self.tree);
        let request = NormalizedRequest::new(tree, self.workers.spec.topology.as_ref())?;
        let count_request = self.count_request(&request, self.note_taken(placed, taken));
        fill_in_counts(self.topologies, &state.names, tree, &count_request, counts, exclusions);
        if state.settings.tas_respect_node_affinity_preferred {
            affinity_score::score(self.topologies, tree, &count_request, counts);
        }
        let load = PodsToAssign {
            pods: self.workers.pods,
            leaders: i64::from(self.leader.is_some()),
            least_free: state.settings.tas_profile_mixed && request.unconstrained,
        };
        let may_balance =
            state.settings.tas_balanced_placement && !request.required && !request.unconstrained;
        let balanced = may_balance
            .then(|| apply_balanced_placement(tree, counts, &request, load, balance, buffers))
            .flatten();
        if balanced.is_none() {
            select_domains(tree, counts, &request, load, buffers)
                .map_err(|shortage| self.reason(&request, counts, exclusions, shortage))?;
        }
        for share in &buffers.shares {
            let here = |wanted: &TasPodSetRequest<'_>, pods| AssignedLeaf {
                flavor: wanted.flavor,
                leaf: share.domain,
                pod_set: wanted.pod_set,
                pods,
            };
            placed.extend((share.pods > 0).then(|| here(self.workers, share.pods)));
            let leader = self.leader.filter(|_| share.leaders > 0);
            placed.extend(leader.map(|leader| here(leader, share.leaders)));
        }
        Ok(())
    }

    /// What other pod sets were given of the machines of this tree; as if nothing were in use also what those have who
    /// stay.
    pub(super) fn note_taken<'t>(
        &self,
        placed: &[AssignedLeaf],
        taken: &'t mut ResourceTable,
    ) -> Option<&'t ResourceTable> {
        let retained = self.empty && self.all.iter().any(|one| !one.retained.is_empty());
        if placed.is_empty() && !retained {
            return None;
        }
        taken.reset(self.tree.leaves().count(), self.state.names.resources.len());
        for one in placed {
            let wanted = self.all.iter().find(|wanted| wanted.pod_set == one.pod_set);
            wanted.into_iter().for_each(|wanted| self.take(taken, wanted, one.leaf, one.pods));
        }
        for wanted in self.all.iter().filter(|_| retained) {
            wanted.retained.iter().for_each(|&(leaf, pods)| self.take(taken, wanted, leaf, pods));
        }
        Some(taken)
    }

    fn take(
        &self,
        taken: &mut ResourceTable,
        wanted: &TasPodSetRequest<'_>,
        leaf: DomainId,
        pods: i64,
    ) {
        let Some(leaf) = self.leaf_here(wanted.flavor, leaf) else {
            return;
        };
        let row = self.tree.row(leaf);
        for &(resource, amount) in wanted.spec.takes() {
            taken.add(row, resource, amount.times(pods));
        }
        taken.add(row, PODS, crate::amount::Amount(pods));
    }

    /// The leaf of this tree that is one of another flavor's tree: flavors may share machines, but no sums of them.
    pub(super) fn leaf_here(&self, flavor: FlavorId, leaf: DomainId) -> Option<DomainId> {
        if flavor == self.workers.flavor {
            return Some(leaf);
        }
        let node = self.topologies.tree(flavor).and_then(|tree| tree.node(leaf));
        node.and_then(|node| self.tree.node_leaf(node))
    }

    fn reason(
        &self,
        request: &NormalizedRequest,
        counts: &CountsByDomain,
        exclusions: &ExclusionStats,
        shortage: NotEnoughDomains,
    ) -> PlacementFailure {
        let Some(level) = self.tree.levels.get(shortage.level).filter(|_| shortage.fit < 0) else {
            let names = &self.state.names;
            let excluded = exclusions.messages(names);
            let topology = names.topologies.name(self.tree.topology).into();
            let leaves = self.tree.leaves().count();
            if !request.layers.is_empty() {
                let fits =
                    slice_layers::fitting_by_layer(self.tree, counts, self.workers, shortage.level);
                return PlacementFailure::SliceLayersNotFit { topology, fits, leaves, excluded };
            }
            return PlacementFailure::NotFit {
                topology,
                fit: shortage.fit,
                wanted: request.slices(self.workers.pods),
                slices: request.slice_size > 1,
                leaves,
                excluded,
            };
        };
        PlacementFailure::NoDomainsAtLevel { level: level.clone() }
    }
}
