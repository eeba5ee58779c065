//! Assigns flavors to a whole Workload: pod set by pod set, resource group by resource group.
//!
//! The usage of earlier pod sets counts against later ones. The first pod set without an assignment ends the loop.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::equivalence_class::{EquivalenceClass, members};
use crate::flavors::assignment::{Assignment, FlavorAssignment, PodSetAssignment};
use crate::flavors::attempt::{AssignmentAttempt, PodSetRequests};
use crate::flavors::{request_order, scan};
use crate::reason::{NoFitReason, PendingReason};
use crate::slices;
use crate::state::State;
use crate::workloads::usage::charge;

/// Computes an assignment into `out`.
pub(crate) fn assign(state: &mut State, attempt: &AssignmentAttempt<'_>, out: &mut Assignment) {
    out.clear();
    for first in 0..attempt.class.pod_sets.len() {
        let members = members(attempt.class, first);
        // The whole group is assigned with its first pod set.
        if members[0] != first {
            continue;
        }
        let complete = assign_group(state, attempt, &members, out);
        if !complete {
            return;
        }
    }
    // Grouped pod sets are assigned together but reported in their own order.
    reorder(attempt.class, out);
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
            // A request of zero needs no quota, so no resource group has to cover it.
            if amount > Amount::ZERO {
                no_fit = true;
                chosen.clear();
                reasons = smallvec::smallvec![NoFitReason::ResourceNotCovered(resource)];
                // Upstream gives no reason if it looked at flavors before.
                pending_reason =
                    pending_reason.or(done.is_empty().then_some(PendingReason::NoMatchingFlavor));
                break;
            }
            continue;
        };
        // One scan covers all resources of a resource group, so that they get the same flavor.
        if done.contains(&index) {
            continue;
        }
        done.push(index);
        let known = reasons.len();
        let flavor_request =
            scan::FlavorRequest { attempt, members, group: &groups[index], requests: &requests };
        let found = scan::scan(state, &flavor_request, &out.usage, &mut reasons);
        pending_reason = pending_reason.max(found.pending_reason);
        if let Some(flavor_assignments) = found.flavor_assignments {
            chosen.extend(flavor_assignments);
            continue;
        }
        if attempt.class.allowed.is_some() && done.len() == 1 {
            // No flavor was looked at.
            pending_reason = pending_reason.or(Some(PendingReason::NoMatchingFlavor));
        }
        // Only the failed resource group explains the failure; earlier ones still contribute to the reason.
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

fn group_requests(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    members: &[usize],
) -> PodSetRequests {
    let mut sums = PodSetRequests::new();
    for &member in members {
        let pod_set = &attempt.class.pod_sets[member];
        for (resource, amount) in state.requests(attempt.queue, pod_set, attempt.count(member)) {
            match sums.iter_mut().find(|(known, _)| *known == resource) {
                Some((_, sum)) => *sum += amount,
                None => sums.push((resource, amount)),
            }
        }
    }
    // The requests of a single pod set are sorted already, but `pods` is appended to them.
    if members.len() > 1 || state.queue(attempt.queue).covers_pods {
        request_order::sort(&state.names, &mut sums);
    }
    sums
}

/// Adds one pod set's part of the group's assignment and charges it.
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
        // A replacement slice is charged only what it requests beyond the old slice (docs/reference/kueue.md §4.4 step 3).
        let held =
            attempt.old.and_then(|old| slices::held_amount(state, old, &pod_set.name, resource));
        out.borrow = out.borrow.max(choice.borrow);
        charge(&mut out.usage, choice.slot, amount - held.map_or(Amount::ZERO, |(_, held)| held));
        // The whole amount, since an admitted replacement slice is charged all of it (docs/reference/kueue.md §4.13).
        one.flavor_assignments.push(FlavorAssignment { amount, ..*choice });
    }
    let grouped =
        pod_set.topology.as_ref().is_some_and(|flavor_request| flavor_request.group.is_some());
    if grouped && state.requests(attempt.queue, pod_set, count).next().is_none() {
        add_topology_flavors(state, chosen, &mut one.flavor_assignments);
    }
    out.pod_sets.push(one);
}

/// A grouped pod set without requests that count as quota, e.g. a leader, gets the topology flavor of its group with
/// amount zero, so that it is placed with the group.
fn add_topology_flavors(
    state: &State,
    chosen: &[FlavorAssignment],
    flavor_assignments: &mut SmallVec<[FlavorAssignment; 4]>,
) {
    let of_machines = |choice: &&FlavorAssignment| state.topologies.tree(choice.flavor).is_some();
    let chosen = chosen.iter().filter(of_machines);
    flavor_assignments
        .extend(chosen.map(|choice| FlavorAssignment { amount: Amount::ZERO, ..*choice }));
}
