//! Placements and assignments: finding places for what was assigned, keeping them, checking them again.

use std::sync::Arc;

use crate::cycle::{Entry, Outcome};
use crate::flavors::assign::{Assignment, Attempt, Mode};
use crate::ids::{FlavorId, WorkloadId};
use crate::reason::{Obstacle, Reason};
use crate::spec::PodSetSpec;
use crate::state::State;
use crate::topology::choose::{Load, Share, Start, choose};
use crate::topology::count::{Ask, count};
use crate::topology::tree::Tree;
use crate::topology::{PlacedDomain, Togetherness, TopologyReason};

/// Places per pod set; empty for those that need none.
type Places = Vec<Vec<PlacedDomain>>;

/// Builds stale trees and places everybody who holds a place.
pub(crate) fn rebuild(state: &mut State) {
    if !std::mem::take(&mut state.topologies.stale) {
        return;
    }
    state.topologies.build(&state.flavors);
    if !state.topologies.any() {
        return;
    }
    for index in 0..state.names.workloads.len() {
        if let Some(workload) = state.workloads.get(WorkloadId::from(index))
            && let Some(admission) = workload.admission.as_deref()
        {
            state.topologies.place(&admission.pod_sets, &workload.shape, &state.shapes);
        }
    }
}

/// The topology flavor a pod set was assigned, if it has to be placed.
fn flavor_of(state: &State, assignment: &Assignment, index: usize) -> Option<FlavorId> {
    let one = assignment.pod_sets.get(index)?;
    let mut flavors = one.choices.iter().map(|choice| choice.flavor);
    flavors.find(|&flavor| state.topologies.tree(flavor).is_some())
}

fn concerns(state: &State, assignment: &Assignment) -> bool {
    (0..assignment.pod_sets.len()).any(|index| flavor_of(state, assignment, index).is_some())
}

/// Finds places for a fresh assignment. What fits the quota but finds no place would need preemption; what finds no
/// place even in an empty topology does not fit at all.
pub(crate) fn assign(state: &mut State, attempt: &Attempt<'_>, assignment: &mut Assignment) {
    if assignment.mode() == Mode::NoFit || !concerns(state, assignment) {
        return;
    }
    if assignment.mode() == Mode::Fit {
        match find(state, attempt, assignment, false) {
            Ok(places) => return keep(assignment, places),
            Err((index, reason)) => demote(state, assignment, index, reason),
        }
    }
    if let Err((index, _)) = find(state, attempt, assignment, true) {
        // What was said before stands; a pod set of which nothing was said stays silent, and so does the condition.
        let one = &mut assignment.pod_sets[index];
        one.no_fit = true;
        let silent = one.reasons.is_empty();
        assignment.obstacle = (!silent).then_some(Obstacle::TopologyPlacementFailed);
    }
}

fn demote(state: &State, assignment: &mut Assignment, index: usize, reason: TopologyReason) {
    let one = &mut assignment.pod_sets[index];
    one.reasons.push(Reason::Placement(Box::new(reason)));
    for choice in &mut one.choices {
        if state.topologies.tree(choice.flavor).is_some() {
            choice.mode = Mode::Preempt;
        }
    }
}

fn keep(assignment: &mut Assignment, places: Places) {
    for (one, domains) in assignment.pod_sets.iter_mut().zip(places) {
        one.domains = domains;
    }
}

/// Places for a Workload that waits for its victims, as if they were gone; in an empty topology if it has none. They
/// count in the rest of the cycle.
pub(crate) fn place_anew(
    state: &mut State,
    attempt: &Attempt<'_>,
    assignment: &mut Assignment,
    empty: bool,
) {
    if assignment.mode() == Mode::Preempt
        && concerns(state, assignment)
        && let Ok(places) = find(state, attempt, assignment, empty)
    {
        keep(assignment, places);
    }
}

/// Whether everybody finds a place now.
pub(crate) fn fits(state: &State, attempt: &Attempt<'_>, assignment: &Assignment) -> bool {
    !concerns(state, assignment) || find(state, attempt, assignment, false).is_ok()
}

/// Finds places for all pod sets, those of a group together. `Err` names the first pod set without one.
fn find(
    state: &State,
    attempt: &Attempt<'_>,
    assignment: &Assignment,
    empty: bool,
) -> Result<Places, (usize, TopologyReason)> {
    let specs = &attempt.shape.pod_sets;
    let mut places: Places = vec![Vec::new(); assignment.pod_sets.len()];
    let mut assumed: Vec<(FlavorId, usize, &PodSetSpec, i64)> = Vec::new();
    for first in 0..assignment.pod_sets.len() {
        let Some(flavor) = flavor_of(state, assignment, first) else {
            continue;
        };
        let Some(tree) = state.topologies.tree(flavor) else {
            continue;
        };
        let Some((workers, leader)) = roles(specs, first, assignment) else {
            continue;
        };
        let here = assumed.iter().filter(|(one, ..)| *one == flavor);
        let here: Vec<_> = here.map(|&(_, leaf, spec, count)| (leaf, spec, count)).collect();
        let search = Search { state, tree, flavor, empty, assumed: &here };
        let count = assignment.pod_sets[workers].count;
        let shares = search.run(&specs[workers], count, leader.map(|one| &specs[one]));
        let shares = shares.map_err(|reason| (workers, reason))?;
        for share in shares {
            let values = || Arc::clone(&tree.domains[share.domain].values);
            if share.pods > 0 {
                places[workers].push(PlacedDomain { values: values(), count: share.pods });
                assumed.push((flavor, share.domain, &specs[workers], share.pods));
            }
            if let Some(leader) = leader
                && share.leaders > 0
            {
                places[leader].push(PlacedDomain { values: values(), count: share.leaders });
                assumed.push((flavor, share.domain, &specs[leader], share.leaders));
            }
        }
    }
    for domains in &mut places {
        domains.sort_by(|left, right| left.values.cmp(&right.values));
    }
    Ok(places)
}

/// Workers and leader of the group that starts with `first`; `None` if the group was placed already.
fn roles(
    specs: &[PodSetSpec],
    first: usize,
    assignment: &Assignment,
) -> Option<(usize, Option<usize>)> {
    let group = |index: usize| specs[index].topology.as_ref().and_then(|wish| wish.group.as_ref());
    let Some(name) = group(first) else {
        return Some((first, None));
    };
    let mut members = (0..specs.len()).filter(|&index| group(index) == Some(name));
    match (members.next(), members.next()) {
        (Some(one), _) if one != first => None,
        (Some(one), Some(other)) => {
            let count = |index: usize| assignment.pod_sets[index].count;
            // Of two pod sets of the same size the later one leads, whatever they are called.
            Some(if count(one) >= count(other) { (one, Some(other)) } else { (other, Some(one)) })
        }
        _ => Some((first, None)),
    }
}

/// One search in one tree.
struct Search<'a> {
    state: &'a State,
    tree: &'a Tree,
    flavor: FlavorId,
    empty: bool,
    assumed: &'a [(usize, &'a PodSetSpec, i64)],
}

impl Search<'_> {
    fn run(
        &self,
        workers: &PodSetSpec,
        pods: i64,
        leader: Option<&PodSetSpec>,
    ) -> Result<Vec<Share>, TopologyReason> {
        let start = self.start(workers);
        let level = |name: &str| self.tree.levels.iter().position(|level| **level == *name);
        let lowest = self.tree.levels.len().saturating_sub(1);
        let wish = workers.topology.as_ref().and_then(|wish| wish.slice.as_ref());
        let (slice_level, slice_size) = match wish {
            Some((name, size)) => (level(name).unwrap_or(lowest), (*size).max(1)),
            None => (lowest, 1),
        };
        if start.level > slice_level {
            let (slice, whole) =
                (self.tree.levels[slice_level].clone(), self.tree.levels[start.level].clone());
            return Err(TopologyReason::SliceAbove { slice, whole });
        }
        let tolerations = self.state.flavor(self.flavor).map(|one| one.tolerations.as_slice());
        let ask = Ask {
            workers,
            count: pods,
            leader,
            tolerations: tolerations.unwrap_or_default(),
            empty: self.empty,
            assumed: self.assumed,
            slice_size,
            slice_level,
        };
        let rooms = count(&self.state.topologies, &self.state.names, self.tree, &ask);
        let load = Load {
            slices: ask.count / slice_size,
            leaders: i64::from(leader.is_some()),
            slice_size,
            slice_level,
            least_free: self.state.settings.topology_mixed && start.unconstrained,
        };
        choose(self.tree, &rooms.rooms, load, start).map_err(|fit| TopologyReason::TooFew {
            topology: self.state.names.topologies.name(self.tree.topology).into(),
            fit,
            wanted: load.slices,
            slices: slice_size > 1,
            leaves: self.tree.by_level.last().map_or(0, Vec::len),
            excluded: rooms.excluded.into_iter().collect(),
        })
    }

    fn start(&self, workers: &PodSetSpec) -> Start {
        let level = |name: &str| self.tree.levels.iter().position(|level| **level == *name);
        let lowest = self.tree.levels.len().saturating_sub(1);
        let anywhere = |level| Start { level, required: false, unconstrained: true };
        let Some(wish) = &workers.topology else {
            return anywhere(lowest);
        };
        match &wish.together {
            Some(Togetherness::Required(name)) => {
                Start { level: level(name).unwrap_or(lowest), required: true, unconstrained: false }
            }
            Some(Togetherness::Preferred(name)) => Start {
                level: level(name).unwrap_or(lowest),
                required: false,
                unconstrained: false,
            },
            Some(Togetherness::Unconstrained) | None if wish.slice.is_some() => anywhere(0),
            Some(Togetherness::Unconstrained) | None => anywhere(lowest),
        }
    }
}

/// Whether the very places that were found are still free.
pub(crate) fn still_fits(state: &State, entry: &Entry) -> bool {
    entry.assignment.pod_sets.iter().enumerate().all(|(index, one)| {
        let Some(flavor) = flavor_of(state, &entry.assignment, index) else {
            return true;
        };
        let Some(tree) = state.topologies.tree(flavor) else {
            return true;
        };
        let spec = &entry.shape.pod_sets[index];
        one.domains.iter().all(|place| {
            let Some(leaf) = tree.leaf(&place.values) else {
                return false;
            };
            // The implicit resource `pods` is not looked at here, as upstream does not.
            spec.requests.iter().all(|&(resource, amount)| {
                let capacity = tree.domains[leaf].capacity.get(resource.index()).copied();
                let used = state.topologies.used(tree, leaf, resource);
                amount.times(place.count) + used <= capacity.unwrap_or_default()
            })
        })
    })
}

/// Whether a head that fitted when it was nominated has lost its places to an earlier head of the cycle.
pub(crate) fn lost_its_place(state: &State, entry: &Entry) -> bool {
    entry.assignment.mode() == Mode::Fit && !still_fits(state, entry)
}

/// Takes the places of an entry for the rest of the cycle.
pub(crate) fn assume(state: &mut State, entry: &Entry) {
    charge(state, entry, 1);
}

/// Takes the places of a head that has to wait, so that later heads of the cycle leave them alone.
pub(crate) fn reserve(state: &mut State, entry: &mut Entry) {
    entry.reserved = true;
    charge(state, entry, 1);
}

/// Gives back what was taken for the cycle.
pub(crate) fn forget(state: &mut State, entry: &Entry) {
    let taken =
        matches!(entry.outcome, Outcome::Reserved { .. } | Outcome::Preempting | Outcome::Deferred);
    if taken || entry.reserved {
        charge(state, entry, -1);
    }
}

fn charge(state: &mut State, entry: &Entry, sign: i64) {
    let pairs = entry.assignment.pod_sets.iter().zip(&entry.shape.pod_sets).enumerate();
    for (index, (one, spec)) in pairs {
        let Some(flavor) = flavor_of(state, &entry.assignment, index) else {
            continue;
        };
        for place in &one.domains {
            state.topologies.charge(flavor, &place.values, spec, place.count * sign);
        }
    }
}
