//! Finding places: one search per pod set or group of them, in the tree of its flavor.
//!
//! What earlier pod sets of the Workload were just given counts against later ones. Flavors come in the order of their
//! names, pod sets in their own. Nothing is charged and nothing allocated: results and buffers stay in [`Scratch`].

use smallvec::SmallVec;

use crate::ids::{DomainId, FlavorId};
use crate::spec::PodSetSpec;
use crate::state::{PODS, State};
use crate::topology::balance::{self, Trial};
use crate::topology::choose::{Buffers, Load, Short, choose};
use crate::topology::count::{Ask, Rooms, count};
use crate::topology::exclude::Tally;
use crate::topology::plan::Plan;
use crate::topology::table::Table;
use crate::topology::topologies::Topologies;
use crate::topology::tree::Tree;
use crate::topology::{TopologyReason, layers, preferred};

/// Pods of one pod set that were given a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) flavor: FlavorId,
    pub(super) leaf: DomainId,
    pub(super) pod_set: usize,
    pub(super) pods: i64,
}

/// What is asked of one pod set: its place among the others, what it is, how many pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) pod_set: usize,
    pub(super) spec: &'a PodSetSpec,
    pub(super) pods: i64,
    pub(super) flavor: FlavorId,
    /// Only below this domain of the flavor's tree.
    pub(super) within: Option<DomainId>,
    /// Pods that have places already, and keep them. In use they are charged.
    pub(super) stay: &'a [(DomainId, i64)],
}

/// The result of a search, and buffers kept between searches.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The result.
    pub(super) placed: Vec<Placed>,
    /// What the last search counted.
    pub(super) rooms: Rooms,
    pub(super) taken: Table,
    /// Why the last search found nobody a place at a leaf.
    pub(super) tally: Tally,
    buffers: Buffers,
    trial: Trial,
}

impl Scratch {
    /// Buffers of a search beside those who were given something.
    pub(super) fn beside(placed: impl Iterator<Item = Placed>) -> Self {
        Self { placed: placed.collect(), ..Self::default() }
    }
}

/// A copy grows buffers of its own.
impl Clone for Scratch {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Finds places for everybody wanted, as things are or as if nothing were in use. `Err` names the pod set for which there
/// are none.
pub(super) fn find(
    state: &State,
    scratch: &mut Scratch,
    all: &[Wanted<'_>],
    empty: bool,
) -> Result<(), (usize, TopologyReason)> {
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
            let Some(search) = Search::of(state, &state.topologies, all, first, empty) else {
                continue;
            };
            search.run(scratch).map_err(|reason| (search.workers.pod_set, reason))?;
        }
    }
    Ok(())
}

/// Workers and leader of the group that starts with `first`; `None` if the group was placed already.
fn roles<'a>(
    all: &'a [Wanted<'a>],
    first: &'a Wanted<'a>,
) -> Option<(&'a Wanted<'a>, Option<&'a Wanted<'a>>)> {
    fn group<'a>(one: &Wanted<'a>) -> Option<&'a str> {
        one.spec.topology.as_ref()?.group.as_deref()
    }
    let Some(name) = group(first) else {
        return Some((first, None));
    };
    let alike =
        |one: &&Wanted<'_>| group(one) == Some(name) && one.flavor == first.flavor && one.pods > 0;
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
pub(super) struct Search<'a> {
    pub(super) state: &'a State,
    pub(super) topologies: &'a Topologies,
    pub(super) tree: &'a Tree,
    pub(super) all: &'a [Wanted<'a>],
    pub(super) workers: &'a Wanted<'a>,
    pub(super) leader: Option<&'a Wanted<'a>>,
    pub(super) empty: bool,
}

impl<'a> Search<'a> {
    /// The search for the group that starts with `first`; `None` if it was placed already, or its flavor has no tree.
    pub(super) fn of(
        state: &'a State,
        topologies: &'a Topologies,
        all: &'a [Wanted<'a>],
        first: &'a Wanted<'a>,
        empty: bool,
    ) -> Option<Self> {
        let tree = topologies.tree(first.flavor)?;
        let (workers, leader) = roles(all, first)?;
        Some(Self { state, topologies, tree, all, workers, leader, empty })
    }

    /// What is asked, of what is left beside `taken`.
    pub(super) fn ask<'t>(&'t self, plan: &'t Plan, taken: Option<&'t Table>) -> Ask<'t> {
        let tolerations = self.state.flavor(self.workers.flavor);
        Ask {
            workers: self.workers.spec,
            leader: self.leader.map(|leader| leader.spec),
            plan,
            tolerations: tolerations.map(|one| one.tolerations.as_slice()).unwrap_or_default(),
            empty: self.empty,
            taken,
            within: self.workers.within,
        }
    }

    pub(super) fn run(&self, scratch: &mut Scratch) -> Result<(), TopologyReason> {
        let Scratch { placed, rooms, taken, tally, buffers, trial } = scratch;
        let (state, tree) = (self.state, self.tree);
        let plan = Plan::new(tree, self.workers.spec.topology.as_ref())?;
        let ask = self.ask(&plan, self.note_taken(placed, taken));
        count(self.topologies, &state.names, tree, &ask, rooms, tally);
        if state.settings.tas_respect_node_affinity_preferred {
            preferred::score(self.topologies, tree, &ask, rooms);
        }
        let load = Load {
            pods: self.workers.pods,
            leaders: i64::from(self.leader.is_some()),
            least_free: state.settings.tas_profile_mixed && plan.unconstrained,
        };
        let may_balance =
            state.settings.tas_balanced_placement && !plan.required && !plan.unconstrained;
        let balanced =
            may_balance.then(|| balance::place(tree, rooms, &plan, load, trial, buffers)).flatten();
        if balanced.is_none() {
            choose(tree, rooms, &plan, load, buffers)
                .map_err(|short| self.reason(&plan, rooms, tally, short))?;
        }
        for share in &buffers.shares {
            let here = |wanted: &Wanted<'_>, pods| Placed {
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
        placed: &[Placed],
        taken: &'t mut Table,
    ) -> Option<&'t Table> {
        let stays = self.empty && self.all.iter().any(|one| !one.stay.is_empty());
        if placed.is_empty() && !stays {
            return None;
        }
        taken.reset(self.tree.leaves().count(), self.state.names.resources.len());
        for one in placed {
            let wanted = self.all.iter().find(|wanted| wanted.pod_set == one.pod_set);
            wanted.into_iter().for_each(|wanted| self.take(taken, wanted, one.leaf, one.pods));
        }
        for wanted in self.all.iter().filter(|_| stays) {
            wanted.stay.iter().for_each(|&(leaf, pods)| self.take(taken, wanted, leaf, pods));
        }
        Some(taken)
    }

    fn take(&self, taken: &mut Table, wanted: &Wanted<'_>, leaf: DomainId, pods: i64) {
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
        let host = self.topologies.tree(flavor).and_then(|tree| tree.host(leaf));
        host.and_then(|host| self.tree.machine(host))
    }

    fn reason(&self, plan: &Plan, rooms: &Rooms, tally: &Tally, short: Short) -> TopologyReason {
        let Some(level) = self.tree.levels.get(short.level).filter(|_| short.fit < 0) else {
            let names = &self.state.names;
            let excluded = tally.in_words(names);
            let topology = names.topologies.name(self.tree.topology).into();
            let leaves = self.tree.leaves().count();
            if !plan.layers.is_empty() {
                let fits = layers::fits(self.tree, rooms, self.workers, short.level);
                return TopologyReason::Layers { topology, fits, leaves, excluded };
            }
            return TopologyReason::TooFew {
                topology,
                fit: short.fit,
                wanted: plan.slices(self.workers.pods),
                slices: plan.slice_size > 1,
                leaves,
                excluded,
            };
        };
        TopologyReason::NoDomains { level: level.clone() }
    }
}
