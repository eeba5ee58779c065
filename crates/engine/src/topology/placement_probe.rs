//! Searches for one who asks why it waits: nothing is changed by them, and their buffers are their own.
//!
//! Earlier pod sets of the Workload count where they would go, in the flavors that they would get, both as things are and
//! as if nothing were in use. Pod sets of one group are looked for together. If machines came or went since the last
//! cycle, the trees are built as the next cycle will build them. Cost: one search per question, more where it fails.

use std::borrow::Cow;

use crate::equivalence_class::EquivalenceClass;
use crate::flavors::assign::members;
use crate::ids::FlavorId;
use crate::state::State;
use crate::topology::PlacementFailure;
use crate::topology::assignment_search::{
    AssignedLeaf, AssignmentSearch, SearchBuffers, TasPodSetRequest,
};
use crate::topology::flavor_assigner::up_to_date;
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::placement_shortfall::PlacementShortfall;
use crate::topology::shortfall_analysis::analyze_shortfall;
use crate::topology::topologies::Topologies;

/// See the module.
pub(crate) struct PlacementProbe<'a> {
    state: &'a State,
    class: &'a EquivalenceClass,
    topologies: Cow<'a, Topologies>,
    /// Pod sets that found places, by the flavor of which.
    assumed: Vec<(usize, FlavorId)>,
    now: ProbeBuffers,
    empty: ProbeBuffers,
}

/// The ground as it is, or as if nothing were in use.
#[derive(Default)]
struct ProbeBuffers {
    /// What the assumed ones were given.
    assumed: Vec<AssignedLeaf>,
    scratch: SearchBuffers,
}

impl ProbeBuffers {
    /// Leaves in the buffers what others than `members` were given.
    fn begin(&mut self, members: &[usize]) {
        let others = self.assumed.iter().filter(|one| !members.contains(&one.pod_set));
        self.scratch.placed.clear();
        self.scratch.placed.extend(others);
    }
}

/// Why no places are found.
pub(crate) enum ProbeFailure {
    /// No machines could meet the request in this topology.
    InvalidRequest(PlacementFailure),
    /// There are too few.
    Shortfall(Box<PlacementShortfall>),
}

impl<'a> PlacementProbe<'a> {
    pub(crate) fn new(state: &'a State, class: &'a EquivalenceClass) -> Self {
        let (now, empty) = (ProbeBuffers::default(), ProbeBuffers::default());
        Self { state, class, topologies: up_to_date(state), assumed: Vec::new(), now, empty }
    }

    /// Whether a flavor has a topology with places in it.
    pub(crate) fn has_topology(&self, flavor: FlavorId) -> bool {
        self.topologies.tree(flavor).is_some()
    }

    /// Whether a pod set, with its group, finds places in a flavor.
    pub(crate) fn probe(&mut self, pod_set: usize, flavor: FlavorId) -> Result<(), ProbeFailure> {
        let members = members(self.class, pod_set);
        let all = self.wanted(&members, flavor);
        let Self { state, topologies, now, empty, .. } = self;
        let Some(search) = search(state, topologies, &all, &members) else {
            return Ok(());
        };
        let request = NormalizedRequest::new(search.tree, search.workers.spec.topology.as_ref());
        let request = request.map_err(ProbeFailure::InvalidRequest)?;
        now.begin(&members);
        if search.run(&mut now.scratch).is_ok() {
            return Ok(());
        }
        empty.begin(&members);
        let fits_if_empty =
            AssignmentSearch { empty: true, ..search }.run(&mut empty.scratch).is_ok();
        Err(ProbeFailure::Shortfall(Box::new(analyze_shortfall(
            &search,
            &request,
            &now.scratch,
            &empty.scratch,
            fits_if_empty,
        ))))
    }

    /// What a pod set and its group find counts against later ones.
    pub(crate) fn assume(&mut self, pod_set: usize, flavor: FlavorId) {
        let members = members(self.class, pod_set);
        if self.assumed.iter().any(|one| members.contains(&one.0)) {
            return;
        }
        let all = self.wanted(&members, flavor);
        let Self { state, topologies, assumed, now, empty, .. } = self;
        let Some(search) = search(state, topologies, &all, &members) else {
            return;
        };
        for (side, empty) in [(now, false), (empty, true)] {
            side.begin(&members);
            if (AssignmentSearch { empty, ..search }).run(&mut side.scratch).is_ok() {
                side.assumed.clone_from(&side.scratch.placed);
            }
        }
        assumed.extend(members.iter().map(|&one| (one, flavor)));
    }

    /// Those who have places, then those who look for some.
    fn wanted(&self, members: &[usize], flavor: FlavorId) -> Vec<TasPodSetRequest<'a>> {
        let assumed = self.assumed.iter().copied().filter(|one| !members.contains(&one.0));
        let all = assumed.chain(members.iter().map(|&one| (one, flavor)));
        let specs = &self.class.pod_sets;
        let all = all.filter_map(|(pod_set, flavor)| {
            let spec = specs.get(pod_set).filter(|spec| spec.count > 0)?;
            Some(TasPodSetRequest {
                pod_set,
                spec,
                pods: spec.count,
                flavor,
                within: None,
                retained: &[],
            })
        });
        all.collect()
    }
}

/// The search for `members`; `None` if they need no places.
fn search<'s>(
    state: &'s State,
    topologies: &'s Topologies,
    all: &'s [TasPodSetRequest<'s>],
    members: &[usize],
) -> Option<AssignmentSearch<'s>> {
    let first = all.iter().find(|one| members.contains(&one.pod_set))?;
    AssignmentSearch::of(state, topologies, all, first, false)
}
