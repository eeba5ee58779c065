//! The assignment of a whole Workload: pod set by pod set, resource group by resource group.
//!
//! What earlier pod sets take counts against later ones. The first pod set that cannot be assigned ends the walk.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::equivalence_class::EquivalenceClass;
use crate::flavors::{request_order, scan};
use crate::ids::{FlavorId, QueueId, ResourceId, Slot, WorkloadId};
use crate::reason::{NoFitReason, PendingReason};
use crate::slices;
use crate::spec::PodSetSpec;
use crate::state::State;
use crate::topology::DomainAssignment;
use crate::workload::{Usage, charge};

/// How far an assignment is from being admitted. Later is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum FlavorAssignmentMode {
    /// Not even preemption helps.
    NoFit,
    /// Somebody would have to go.
    Preempt,
    /// It fits once the victims of others are gone.
    DeferredFit,
    /// It fits.
    #[default]
    Fit,
}

/// The flavor chosen for one resource of one pod set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlavorAssignment {
    /// Which resource.
    pub resource: ResourceId,
    /// Which flavor.
    pub flavor: FlavorId,
    /// Both as a slot.
    pub slot: Slot,
    /// How much the whole pod set takes.
    pub amount: Amount,
    /// How well it fits.
    pub mode: FlavorAssignmentMode,
    /// How far up the tree it reaches.
    pub borrow: u32,
    /// The flavor that was tried last, if others are left to try.
    pub(crate) tried: Option<u16>,
}

/// The assignment of one pod set.
#[derive(Debug, Clone, Default)]
pub struct PodSetAssignment {
    /// Pods it was assigned for.
    pub count: i64,
    /// One entry per resource that got a flavor.
    pub flavor_assignments: SmallVec<[FlavorAssignment; 4]>,
    /// What stands in the way.
    pub reasons: SmallVec<[NoFitReason; 1]>,
    /// At least one resource got no flavor.
    pub no_fit: bool,
    /// Where its pods go, if a topology is asked for and found.
    pub domains: Vec<DomainAssignment>,
    /// No places are looked for now: a check provides the machines first, or another cluster does it.
    pub delayed_topology: bool,
}

impl PodSetAssignment {
    /// The worst of its choices.
    pub fn mode(&self) -> FlavorAssignmentMode {
        if self.no_fit {
            return FlavorAssignmentMode::NoFit;
        }
        if self.reasons.is_empty() {
            // Where preemption is preferred over borrowing, a flavor can be worst for what it borrows, and then counts
            // as fitting although another resource needs preemption. Upstream goes by the absence of reasons.
            return FlavorAssignmentMode::Fit;
        }
        self.flavor_assignments.iter().map(|choice| choice.mode).min().unwrap_or_default()
    }
}

/// The assignment of a Workload.
#[derive(Debug, Clone, Default)]
pub struct Assignment {
    /// Pod sets, in order; those after the first that does not fit are missing.
    pub pod_sets: Vec<PodSetAssignment>,
    /// What it takes, by slot; of a replacement, what it takes beside the old slice.
    pub(crate) usage: Usage,
    /// How far up the tree it reaches.
    pub borrow: u32,
    /// Why it does not fit, if it does not.
    pub pending_reason: Option<PendingReason>,
    /// It fits once the victims of others are gone.
    pub(crate) deferred: bool,
}

impl Assignment {
    /// The worst of its pod sets.
    pub fn mode(&self) -> FlavorAssignmentMode {
        let worst = self.pod_sets.iter().map(PodSetAssignment::mode).min().unwrap_or_default();
        if worst == FlavorAssignmentMode::Fit && self.deferred {
            FlavorAssignmentMode::DeferredFit
        } else {
            worst
        }
    }

    /// Flavors are left that were not tried.
    pub(crate) fn has_untried(&self) -> bool {
        self.pod_sets
            .iter()
            .any(|one| one.flavor_assignments.iter().any(|choice| choice.tried.is_some()))
    }

    /// The slots for which somebody would have to go.
    pub(crate) fn contested(&self) -> SmallVec<[Slot; 4]> {
        let mut slots = SmallVec::new();
        for choice in self.pod_sets.iter().flat_map(|one| &one.flavor_assignments) {
            if choice.mode == FlavorAssignmentMode::Preempt && !slots.contains(&choice.slot) {
                slots.push(choice.slot);
            }
        }
        slots
    }

    /// What all its choices take.
    pub(crate) fn whole_usage(&self) -> Usage {
        let mut usage = Usage::new();
        for choice in self.pod_sets.iter().flat_map(|one| &one.flavor_assignments) {
            charge(&mut usage, choice.slot, choice.amount);
        }
        usage
    }

    pub(crate) fn clear(&mut self) {
        self.pod_sets.clear();
        self.usage.clear();
        (self.borrow, self.pending_reason, self.deferred) = (0, None, false);
    }
}

/// What an assignment is computed for.
#[derive(Debug, Clone)]
pub(crate) struct AssignmentAttempt<'a> {
    pub(crate) workload: WorkloadId,
    pub(crate) queue: QueueId,
    pub(crate) class: &'a Arc<EquivalenceClass>,
    /// Other counts than the shape's, for partial admission.
    pub(crate) counts: Option<&'a [i64]>,
    /// Where earlier scans stopped.
    pub(crate) tried: &'a [(u16, ResourceId, u16)],
    /// The slice whose quota it takes over.
    pub(crate) old: Option<WorkloadId>,
    /// Flavors that must not change: a second look within one cycle.
    pub(crate) pins: Option<&'a [(u16, ResourceId, FlavorId)]>,
}

impl AssignmentAttempt<'_> {
    pub(crate) fn count(&self, pod_set: usize) -> i64 {
        self.counts.map_or(self.class.pod_sets[pod_set].count, |counts| counts[pod_set])
    }
}

/// Requests of one or several pod sets, in the order in which they are walked.
pub(crate) type Requests = SmallVec<[(ResourceId, Amount); 4]>;

/// Computes an assignment into `out`.
pub(crate) fn assign(state: &mut State, attempt: &AssignmentAttempt<'_>, out: &mut Assignment) {
    out.clear();
    for first in 0..attempt.class.pod_sets.len() {
        let members = members(attempt.class, first);
        if members[0] != first {
            continue;
        }
        let complete = assign_group(state, attempt, &members, out);
        if !complete {
            return;
        }
    }
    // Grouped pod sets are assigned together, but reported in their own order.
    reorder(attempt.class, out);
}

/// The pod sets that must get the same flavors as `first`, in order.
pub(crate) fn members(class: &EquivalenceClass, first: usize) -> SmallVec<[usize; 2]> {
    let group = |one: &PodSetSpec| one.topology.as_ref().and_then(|wish| wish.group.clone());
    let Some(name) = group(&class.pod_sets[first]) else {
        return SmallVec::from_slice(&[first]);
    };
    let all = class.pod_sets.iter().enumerate();
    all.filter(|(_, one)| group(one).as_ref() == Some(&name)).map(|(index, _)| index).collect()
}

fn reorder(class: &EquivalenceClass, out: &mut Assignment) {
    let mut order: SmallVec<[usize; 4]> = SmallVec::new();
    for first in 0..class.pod_sets.len() {
        let members = members(class, first);
        if members[0] == first {
            order.extend(members);
        }
    }
    if order.is_sorted() {
        return;
    }
    let mut pairs: Vec<_> = order.into_iter().zip(out.pod_sets.drain(..)).collect();
    pairs.sort_by_key(|(index, _)| *index);
    out.pod_sets.extend(pairs.into_iter().map(|(_, one)| one));
}

/// Assigns the pod sets of one group. Returns false if they do not fit.
fn assign_group(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    members: &[usize],
    out: &mut Assignment,
) -> bool {
    let requests = group_requests(state, attempt, members);
    let mut chosen: SmallVec<[FlavorAssignment; 4]> = SmallVec::new();
    let mut reasons: SmallVec<[NoFitReason; 1]> = SmallVec::new();
    let mut no_fit = false;
    let mut pending_reason = None;
    let groups = Arc::clone(&state.queue(attempt.queue).groups);
    let mut done: SmallVec<[usize; 4]> = SmallVec::new();
    for &(resource, amount) in &requests {
        let covering = groups.iter().position(|group| group.resources.contains(&resource));
        let Some(index) = covering else {
            if amount > Amount::ZERO {
                no_fit = true;
                chosen.clear();
                reasons = smallvec::smallvec![NoFitReason::ResourceNotCovered(resource)];
                // Upstream names no obstacle if it looked at flavors before.
                pending_reason =
                    pending_reason.or(done.is_empty().then_some(PendingReason::NoMatchingFlavor));
                break;
            }
            continue;
        };
        if done.contains(&index) {
            continue;
        }
        done.push(index);
        let known = reasons.len();
        let wish =
            scan::FlavorRequest { attempt, members, group: &groups[index], requests: &requests };
        let found = scan::scan(state, &wish, &out.usage, &mut reasons);
        pending_reason = pending_reason.max(found.pending_reason);
        if let Some(flavor_assignments) = found.flavor_assignments {
            chosen.extend(flavor_assignments);
            continue;
        }
        if attempt.class.allowed.is_some() && done.len() == 1 {
            // No flavor was looked at.
            pending_reason = pending_reason.or(Some(PendingReason::NoMatchingFlavor));
        }
        // Only the group that failed explains the failure; flavors that failed before it still colour the obstacle.
        no_fit = true;
        chosen.clear();
        reasons.drain(..known);
        break;
    }
    if no_fit {
        out.pending_reason = out.pending_reason.max(pending_reason);
    }
    for &member in members {
        push_pod_set(state, attempt, member, &chosen, out);
    }
    let start = out.pod_sets.len() - members.len();
    for one in &mut out.pod_sets[start..] {
        (one.no_fit, one.reasons) = (no_fit, reasons.clone());
    }
    !no_fit
}

fn group_requests(state: &State, attempt: &AssignmentAttempt<'_>, members: &[usize]) -> Requests {
    let mut sums = Requests::new();
    for &member in members {
        let pod_set = &attempt.class.pod_sets[member];
        for (resource, amount) in state.requests(attempt.queue, pod_set, attempt.count(member)) {
            match sums.iter_mut().find(|(known, _)| *known == resource) {
                Some((_, sum)) => *sum += amount,
                None => sums.push((resource, amount)),
            }
        }
    }
    if members.len() > 1 || state.queue(attempt.queue).covers_pods {
        request_order::sort(&state.names, &mut sums);
    }
    sums
}

/// Gives one pod set its part of the group's choices and charges it.
fn push_pod_set(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    member: usize,
    chosen: &[FlavorAssignment],
    out: &mut Assignment,
) {
    let count = attempt.count(member);
    let mut one = PodSetAssignment { count, ..PodSetAssignment::default() };
    let pod_set = &attempt.class.pod_sets[member];
    for (resource, amount) in state.requests(attempt.queue, pod_set, count) {
        let Some(choice) = chosen.iter().find(|choice| choice.resource == resource) else {
            continue;
        };
        let held = attempt.old.and_then(|old| slices::held(state, old, &pod_set.name, resource));
        out.borrow = out.borrow.max(choice.borrow);
        charge(&mut out.usage, choice.slot, amount - held.map_or(Amount::ZERO, |(_, held)| held));
        one.flavor_assignments.push(FlavorAssignment { amount, ..*choice });
    }
    let grouped = pod_set.topology.as_ref().is_some_and(|wish| wish.group.is_some());
    if grouped && state.requests(attempt.queue, pod_set, count).next().is_none() {
        borrow_places(state, chosen, &mut one.flavor_assignments);
    }
    out.pod_sets.push(one);
}

/// A pod set without a request that counts as quota, as leaders may be, stands with its group: it gets the topology flavor
/// of the others, and nothing of it.
fn borrow_places(
    state: &State,
    chosen: &[FlavorAssignment],
    flavor_assignments: &mut SmallVec<[FlavorAssignment; 4]>,
) {
    let of_machines = |choice: &&FlavorAssignment| state.topologies.tree(choice.flavor).is_some();
    let chosen = chosen.iter().filter(of_machines);
    flavor_assignments
        .extend(chosen.map(|choice| FlavorAssignment { amount: Amount::ZERO, ..*choice }));
}
