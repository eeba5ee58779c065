//! The scan of one resource group: its flavors in order, from where the last attempt stopped, until one is good enough.
//!
//! Source: docs/reference/kueue.md §4.4 steps 1-7. Cost: flavors tried times resources, plus a preemption search for each
//! resource that is in use.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::flavors::assign::{Attempt, Choice};
use crate::flavors::grade::{Grade, Grant, grade};
use crate::ids::{FlavorId, QueueId, ResourceId};
use crate::reason::{Obstacle, Reason};
use crate::slices;
use crate::spec::{FlavorSpec, Fungibility, PodSetSpec, Preference, Search};
use crate::state::{Group, State};
use crate::topology::topologies::Fitness;
use crate::variants;
use crate::workload::{Usage, charged};

/// What a scan is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish<'a> {
    pub(crate) attempt: &'a Attempt<'a>,
    /// The pod sets that get the same flavor.
    pub(crate) members: &'a [usize],
    pub(crate) group: &'a Group,
    /// What they ask for together.
    pub(crate) requests: &'a [(ResourceId, Amount)],
}

impl Wish<'_> {
    /// The requested resource that comes first by name; progress is noted under it.
    fn first_resource(&self) -> Option<ResourceId> {
        let mut requested = self.requests.iter().map(|(resource, _)| *resource);
        requested.find(|resource| self.group.resources.contains(resource))
    }
}

pub(crate) type Choices = SmallVec<[Choice; 4]>;

/// What a scan found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The best flavor, if any is possible.
    pub(crate) choices: Option<Choices>,
    /// What stands in the way of the least hopeless of the flavors that do not fit.
    pub(crate) obstacle: Option<Obstacle>,
}

/// Finds the best flavor for the covered resources.
pub(crate) fn scan(
    state: &mut State,
    wish: &Wish<'_>,
    assumed: &Usage,
    reasons: &mut SmallVec<[Reason; 1]>,
) -> Found {
    let fungibility = state.queue(wish.attempt.queue).fungibility;
    let mut best: Option<(Grade, Choices)> = None;
    let mut obstacle: Option<Obstacle> = None;
    let mut meet = |one: Obstacle| obstacle = Some(obstacle.map_or(one, |old| old.min(one)));
    let mut last = None;
    let known = reasons.len();
    for index in start(state, wish)..wish.group.flavors.len() {
        let flavor = wish.group.flavors[index];
        last = Some(index);
        if !pinned(wish, flavor) {
            reasons.extend(
                wish.first_resource().map(|resource| Reason::NotNominated { flavor, resource }),
            );
            continue;
        }
        if let Some(reason) = not_allowed(wish, flavor) {
            reasons.push(reason);
            continue;
        }
        if let Some(reason) = unsuitable(state, wish, flavor) {
            reasons.push(reason);
            meet(Obstacle::NoMatchingFlavor);
            continue;
        }
        let (worst, choices) = judge(state, wish, index, assumed, fungibility.preference, reasons);
        if let Grant::NoFit(found) = worst.grant {
            meet(found);
            continue;
        }
        if good_enough(state, worst, fungibility) {
            best = Some((worst, choices));
            break;
        }
        if best.as_ref().is_none_or(|(old, _)| is_better(state, worst, *old, fungibility)) {
            best = Some((worst, choices));
        }
    }
    let Some((grade, mut choices)) = best else {
        return Found { choices: None, obstacle };
    };
    note_progress(state, wish, last, &mut choices);
    if grade.grant == Grant::Fit {
        // Whoever fits has nothing to explain.
        reasons.truncate(known);
    }
    Found { choices: Some(choices), obstacle }
}

/// The first flavor to try.
fn start(state: &State, wish: &Wish<'_>) -> usize {
    if !state.settings.fungibility {
        return 0;
    }
    let first = wish.members[0];
    let Some(resource) = wish.first_resource() else {
        return 0;
    };
    let tried = wish.attempt.tried.iter();
    let mut tried = tried.filter(|one| usize::from(one.0) == first && one.1 == resource);
    let next = tried.next().map_or(0, |&(_, _, flavor)| usize::from(flavor) + 1);
    // The queue may have fewer flavors now than when the last attempt stopped. Upstream would look at none.
    if next < wish.group.flavors.len() { next } else { 0 }
}

fn pinned(wish: &Wish<'_>, flavor: FlavorId) -> bool {
    let Some(pins) = wish.attempt.pins else {
        return true;
    };
    let of_wish = |pin: &&(u16, ResourceId, FlavorId)| {
        wish.members.contains(&usize::from(pin.0)) && wish.group.resources.contains(&pin.1)
    };
    pins.iter().filter(of_wish).any(|pin| pin.2 == flavor)
}

/// Why a variant may not get the flavor.
pub(crate) fn not_allowed(wish: &Wish<'_>, flavor: FlavorId) -> Option<Reason> {
    (!variants::allows(wish.attempt.shape, flavor)).then_some(Reason::NotAllowed(flavor))
}

/// Why no pod of the pod sets may get the flavor, whatever its quota.
pub(crate) fn unsuitable(state: &State, wish: &Wish<'_>, id: FlavorId) -> Option<Reason> {
    let Attempt { queue, shape, .. } = wish.attempt;
    let mut pod_sets = wish.members.iter().map(|&member| &shape.pod_sets[member]);
    pod_sets.find_map(|pod_set| unfit(state, *queue, pod_set, wish.group, id))
}

/// Whether a pod set may get a flavor of a group, whatever its quota.
pub(crate) fn suits(
    state: &State,
    queue: QueueId,
    pod_set: &PodSetSpec,
    group: &Group,
    id: FlavorId,
) -> bool {
    unfit(state, queue, pod_set, group, id).is_none()
}

/// Why a pod set may not.
fn unfit(
    state: &State,
    queue: QueueId,
    pod_set: &PodSetSpec,
    group: &Group,
    id: FlavorId,
) -> Option<Reason> {
    let Some(flavor) = state.flavor(id) else {
        return Some(Reason::NoFlavor(id));
    };
    let (implied, covered) = (state.queue(queue).topology_only, &group.resources);
    match state.topologies.fitness(pod_set, flavor.topology, implied, covered) {
        Fitness::Suits => repelled(flavor, id, pod_set),
        Fitness::NoTopology => Some(Reason::NoTopology(id)),
        Fitness::NoLevel => Some(Reason::NoLevel(id)),
        Fitness::TopologyOnly => Some(Reason::TopologyOnly(id)),
    }
}

fn repelled(flavor: &FlavorSpec, id: FlavorId, pod_set: &PodSetSpec) -> Option<Reason> {
    if let Some((taint, _)) = pod_set.selection.untolerated(&flavor.taints, &flavor.tolerations) {
        return Some(Reason::Taint { flavor: id, taint });
    }
    (!pod_set.selection.matches_flavor(&flavor.labels)).then_some(Reason::Affinity(id))
}

/// Grades every covered resource in one flavor; the flavor is as good as the worst of them.
fn judge(
    state: &mut State,
    wish: &Wish<'_>,
    index: usize,
    assumed: &Usage,
    preference: Preference,
    reasons: &mut SmallVec<[Reason; 1]>,
) -> (Grade, Choices) {
    let mut worst = Grade { grant: Grant::Fit, borrow: 0 };
    let mut choices = Choices::new();
    for &(resource, amount) in wish.requests {
        let Some(slot) = wish.group.slot(index, resource) else {
            continue;
        };
        let flavor = wish.group.flavors[index];
        let (amount, other) = beyond_old(state, wish, resource, flavor, amount);
        if let Some(reason) = other {
            reasons.push(reason);
            worst = worst.or_worse(NO_MATCH, preference);
        }
        let earlier = charged(assumed, slot);
        let (grade, reason) = grade(state, wish.attempt, slot, earlier, amount);
        reasons.extend(reason);
        worst = worst.or_worse(grade, preference);
        if grade.is_no_fit() {
            continue;
        }
        choices.push(Choice {
            resource,
            flavor,
            slot,
            amount,
            mode: grade.mode(),
            borrow: grade.borrow,
            tried: None,
        });
    }
    (worst, choices)
}

/// What is asked for beyond what the old slice has; or why it must be another flavor: that of the old slice.
pub(crate) fn beyond_old(
    state: &State,
    wish: &Wish<'_>,
    resource: ResourceId,
    flavor: FlavorId,
    mut amount: Amount,
) -> (Amount, Option<Reason>) {
    let Some(old) = wish.attempt.old else {
        return (amount, None);
    };
    for &member in wish.members {
        let pod_set = &wish.attempt.shape.pod_sets[member];
        match slices::held(state, old, &pod_set.name, resource) {
            Some((known, held)) if known == flavor => amount -= held,
            other => {
                let original = other.map(|(known, _)| known);
                return (amount, Some(Reason::OfOldSlice { flavor, original }));
            }
        }
    }
    (amount, None)
}

/// A flavor that will not do, whatever there is of it.
const NO_MATCH: Grade = Grade { grant: Grant::NoFit(Obstacle::NoMatchingFlavor), borrow: 0 };

fn good_enough(state: &State, grade: Grade, fungibility: Fungibility) -> bool {
    if !state.settings.fungibility {
        return grade.grant == Grant::Fit;
    }
    match grade.grant {
        Grant::NoFit(_) | Grant::NoCandidates => false,
        Grant::Preempt | Grant::Reclaim if fungibility.when_can_preempt == Search::TryNext => false,
        Grant::Preempt | Grant::Reclaim | Grant::Fit => {
            grade.borrow == 0 || fungibility.when_can_borrow == Search::MayStop
        }
    }
}

/// Whether a flavor is worth more than the best so far. Without the gate it does not matter how far they reach.
fn is_better(state: &State, new: Grade, old: Grade, fungibility: Fungibility) -> bool {
    if state.settings.fungibility {
        new.better_than(old, fungibility.preference)
    } else {
        new.grants_more_than(old)
    }
}

/// Notes where the scan stopped, unless it saw the last flavor.
fn note_progress(state: &State, wish: &Wish<'_>, last: Option<usize>, choices: &mut Choices) {
    if !state.settings.fungibility {
        // Without the gate progress is neither kept nor used, but heads with a choice count as unfinished.
        choices.iter_mut().for_each(|choice| choice.tried = Some(0));
        return;
    }
    let left = last.filter(|&last| last + 1 < wish.group.flavors.len());
    let tried = left.and_then(|last| u16::try_from(last).ok());
    for choice in choices {
        choice.tried = tried;
    }
}
