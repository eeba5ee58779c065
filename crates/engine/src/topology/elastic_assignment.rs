//! Places of a slice that takes the place of another: its pods stay where those of the old slice stand.
//!
//! Only the pods beyond the old slice's are looked for, beside them; of fewer the last ones go. A leader stays too. Where a
//! machine of the old slice is gone, or pods do not fill slices, everybody is placed anew. Pods must not have to stand
//! mode, or want to, for those who come later could not. Gate ElasticJobsViaWorkloadSlicesWithTAS; source:
//! docs/reference/kueue.md §4.11, §4.13.
//!
//! Until the new slice gets its places the old one's are charged, and the new one counts for what it takes beside them;
//! from then on all of it is the new one's ([`crate::slices`]).

use smallvec::SmallVec;

use crate::cycle::CycleEntry;
use crate::flavors::assign::{Assignment, AssignmentAttempt, members};
use crate::ids::{DomainId, FlavorId, WorkloadId};
use crate::reason::NoFitReason;
use crate::slices;
use crate::spec::PodSetSpec;
use crate::state::State;
use crate::topology::{DomainAssignment, TopologyMode};

/// Leaves, and how many pods of a pod set stay there; by pod set.
#[derive(Debug, Default)]
pub(super) struct RetainedAssignments(Vec<RetainedLeaves>);

/// Those of one pod set who stay.
pub(super) type RetainedLeaves = SmallVec<[(DomainId, i64); 4]>;

impl RetainedAssignments {
    /// Who stays of an assignment for a slice that replaces another.
    pub(super) fn of(
        state: &State,
        attempt: &AssignmentAttempt<'_>,
        assignment: &Assignment,
    ) -> Self {
        let Some(old) =
            attempt.old.filter(|_| state.settings.elastic_jobs_via_workload_slices_with_tas)
        else {
            return Self::default();
        };
        let count = assignment.pod_sets.len();
        let mut all = Self(vec![RetainedLeaves::new(); count]);
        for first in 0..count {
            let group = members(attempt.class, first);
            if group[0] == first
                && let Some(found) = of_group(state, attempt, assignment, old, &group)
            {
                found.into_iter().for_each(|(at, retained)| all.0[at] = retained);
            }
        }
        all
    }

    pub(super) fn get(&self, pod_set: usize) -> &[(DomainId, i64)] {
        self.0.get(pod_set).map(RetainedLeaves::as_slice).unwrap_or_default()
    }

    pub(super) fn pods(&self, pod_set: usize) -> i64 {
        self.get(pod_set).iter().map(|one| one.1).sum()
    }
}

/// Who stays of a group of pod sets; `None` if everybody is placed anew.
fn of_group(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &Assignment,
    old: WorkloadId,
    group: &[usize],
) -> Option<Vec<(usize, RetainedLeaves)>> {
    let count = |at: usize| assignment.pod_sets.get(at).map_or(0, |one| one.count);
    // Of two pod sets the larger works, the first of equal ones.
    let workers = group.iter().copied().rev().max_by_key(|&at| count(at))?;
    let mut found = Vec::new();
    for &at in group {
        let spec = &attempt.class.pod_sets[at];
        let retained = previous_leaves(state, assignment, old, at, spec)?;
        let before: i64 = retained.iter().map(|one| one.1).sum();
        let whole = |pods: i64| slice_size(spec).is_none_or(|size| pods % size == 0);
        if at == workers && (before == 0 || !whole(before) || !whole(count(at))) {
            return None;
        }
        found.push((at, first_pods(retained, count(at))));
    }
    Some(found)
}

fn slice_size(spec: &PodSetSpec) -> Option<i64> {
    let slices = spec.topology.iter().flat_map(|topology_request| &topology_request.slices);
    slices.map(|one| one.1.max(1)).next()
}

/// Where the old slice's pods of a pod set stand; `None` if one of these places is gone.
fn previous_leaves(
    state: &State,
    assignment: &Assignment,
    old: WorkloadId,
    at: usize,
    spec: &PodSetSpec,
) -> Option<RetainedLeaves> {
    let mut flavors =
        assignment.pod_sets.get(at)?.flavor_assignments.iter().map(|choice| choice.flavor);
    let Some(tree) = flavors.find_map(|flavor| state.topologies.tree(flavor)) else {
        return Some(RetainedLeaves::new());
    };
    let places = slices::given(state, old, &spec.name).map(|one| one.domains.as_slice());
    let leaf = |place: &DomainAssignment| Some((tree.leaf(&place.values)?, place.count));
    places.unwrap_or_default().iter().map(leaf).collect()
}

/// So many pods, those in front.
fn first_pods(retained: RetainedLeaves, mut pods: i64) -> RetainedLeaves {
    let mut first = RetainedLeaves::new();
    for (leaf, here) in retained {
        let here = here.min(pods);
        pods -= here;
        first.extend((here > 0).then_some((leaf, here)));
    }
    first
}

/// Why a pod set of a replacement cannot have a place: who has to stand mode, or wants to, cannot grow.
pub(super) fn unsupported_constraint(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    spec: &PodSetSpec,
) -> Option<NoFitReason> {
    let elastic = state.settings.elastic_jobs_via_workload_slices_with_tas
        && attempt.class.replaced_slice.is_some();
    match spec.topology.as_ref().filter(|_| elastic)?.mode.as_ref()? {
        TopologyMode::Required(_) => Some(NoFitReason::ElasticConstraint { required: true }),
        TopologyMode::Preferred(_) => Some(NoFitReason::ElasticConstraint { required: false }),
        TopologyMode::Unconstrained => None,
    }
}

/// How many pods an entry puts on a place beside those that the slice that it replaces has there.
pub(super) fn pods_beyond_previous(
    state: &State,
    entry: &CycleEntry,
    pod_set: usize,
    flavor: FlavorId,
    place: &DomainAssignment,
) -> i64 {
    let old =
        entry.replaced_slice.filter(|_| state.settings.elastic_jobs_via_workload_slices_with_tas);
    let held = old.and_then(|old| slices::given(state, old, &entry.class.pod_sets[pod_set].name));
    let (Some(held), Some(tree)) = (held, state.topologies.tree(flavor)) else {
        return place.count;
    };
    let leaf = tree.leaf(&place.values);
    let there = held.domains.iter().filter(|one| tree.leaf(&one.values) == leaf);
    (place.count - there.map(|one| one.count).sum::<i64>()).max(0)
}
