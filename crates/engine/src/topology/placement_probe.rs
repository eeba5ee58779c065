//! Searches that explain why a Workload is pending. They change nothing and use buffers of their own.
//!
//! Earlier pod sets of the Workload count in the flavors and domains that they would get, both for current usage
//! and for an empty topology. Pod sets of one group are searched together. If nodes changed since the last cycle,
//! the probe builds the trees as the next cycle will. Cost: one search per probe; a failed probe costs one more and
//! an analysis.

use std::borrow::Cow;

use crate::ids::FlavorId;
use crate::state::State;
use crate::topology::PlacementFailure;
use crate::topology::assignment_search::{
    AssignedLeaf, AssignmentSearch, SearchBuffers, SearchTables, TasPodSetRequest,
};
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::placement_shortfall::PlacementShortfall;
use crate::topology::shortfall_analysis::analyze_shortfall;
use crate::topology::topologies::Topologies;
use crate::workloads::equivalence_class::{EquivalenceClass, members};

/// Searches for topology assignments without changing the state.
pub(crate) struct PlacementProbe<'a> {
    state: &'a State,
    class: &'a EquivalenceClass,
    topologies: Cow<'a, Topologies>,
    /// Pod sets assumed to be assigned, and the flavor of each.
    assumed: Vec<(usize, FlavorId)>,
    now: ProbeBuffers,
    empty: ProbeBuffers,
}

/// Assignments and buffers for one view of the topology: with current usage, or empty.
#[derive(Default)]
struct ProbeBuffers {
    /// Assignments of the assumed pod sets.
    assumed: Vec<AssignedLeaf>,
    search_buffers: SearchBuffers,
}

impl ProbeBuffers {
    /// Resets the buffers to the assignments of all pod sets but `members`.
    fn begin(&mut self, members: &[usize]) {
        let other_assignments = self.assumed.iter().filter(|one| !members.contains(&one.pod_set));
        self.search_buffers.assigned.clear();
        self.search_buffers.assigned.extend(other_assignments);
    }
}

/// Why a probe finds no topology assignment.
pub(crate) enum ProbeFailure {
    /// The request contradicts the topology.
    InvalidRequest(PlacementFailure),
    /// Not enough capacity.
    Shortfall(Box<PlacementShortfall>),
}

impl<'a> PlacementProbe<'a> {
    pub(crate) fn new(state: &'a State, class: &'a EquivalenceClass) -> Self {
        let State { names, settings, quota, workloads, topology, .. } = state;
        let topologies = topology.up_to_date(names, settings, quota, workloads);
        let (now, empty) = (ProbeBuffers::default(), ProbeBuffers::default());
        Self { state, class, topologies, assumed: Vec::new(), now, empty }
    }

    /// Whether a flavor has a tree of domains.
    pub(crate) fn has_topology(&self, flavor: FlavorId) -> bool {
        self.topologies.tree(flavor).is_some()
    }

    /// Searches for a pod set and its group in a flavor.
    ///
    /// # Errors
    /// Why there is no topology assignment.
    pub(crate) fn probe(&mut self, pod_set: usize, flavor: FlavorId) -> Result<(), ProbeFailure> {
        let members = members(self.class, pod_set);
        let all = self.requests(&members, flavor);
        let Self { state, topologies, now, empty, .. } = self;
        let Some(search) = search(tables(state, topologies), &all, &members) else {
            return Ok(());
        };
        let request = NormalizedRequest::new(search.tree, search.workers.spec.topology.as_ref());
        let request = request.map_err(ProbeFailure::InvalidRequest)?;
        now.begin(&members);
        if search.run(&mut now.search_buffers).is_ok() {
            return Ok(());
        }
        // Repeated in an empty topology, to tell missing capacity from capacity in use.
        empty.begin(&members);
        let fits_if_empty =
            AssignmentSearch { empty: true, ..search }.run(&mut empty.search_buffers).is_ok();
        Err(ProbeFailure::Shortfall(Box::new(analyze_shortfall(
            &search,
            &state.workloads,
            &request,
            &now.search_buffers,
            &empty.search_buffers,
            fits_if_empty,
        ))))
    }

    /// Assumes what a pod set and its group would get, so that it counts for later pod sets.
    pub(crate) fn assume(&mut self, pod_set: usize, flavor: FlavorId) {
        let members = members(self.class, pod_set);
        // The whole group is assumed with its first pod set.
        if self.assumed.iter().any(|one| members.contains(&one.0)) {
            return;
        }
        let all = self.requests(&members, flavor);
        let Self { state, topologies, assumed, now, empty, .. } = self;
        let Some(search) = search(tables(state, topologies), &all, &members) else {
            return;
        };
        for (view, empty) in [(now, false), (empty, true)] {
            view.begin(&members);
            if (AssignmentSearch { empty, ..search }).run(&mut view.search_buffers).is_ok() {
                view.assumed.clone_from(&view.search_buffers.assigned);
            }
        }
        assumed.extend(members.iter().map(|&one| (one, flavor)));
    }

    /// Requests of the assumed pod sets, then those of `members`.
    fn requests(&self, members: &[usize], flavor: FlavorId) -> Vec<TasPodSetRequest<'a>> {
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

fn tables<'s>(state: &'s State, topologies: &'s Topologies) -> SearchTables<'s> {
    SearchTables { names: &state.names, settings: &state.settings, quota: &state.quota, topologies }
}

/// The search for `members`; `None` if they need no topology assignment.
fn search<'s>(
    tables: SearchTables<'s>,
    all: &'s [TasPodSetRequest<'s>],
    members: &[usize],
) -> Option<AssignmentSearch<'s>> {
    let first = all.iter().find(|one| members.contains(&one.pod_set))?;
    AssignmentSearch::of(tables, all, first, false)
}
