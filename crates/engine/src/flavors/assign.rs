//! Assigns flavors to a whole Workload: pod set by pod set, resource group by resource group.
//!
//! The usage of earlier pod sets counts against later ones. The first pod set without an assignment ends the loop.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::flavors::assignment::{
    Assignment, FlavorAssignment, FlavorTrialResult, PodSetFlavorAssignment,
};
use crate::flavors::attempt::{AssignmentAttempt, PodSetRequests};
use crate::flavors::empty_pod_sets::{EmptyGroupProbe, are_empty};
use crate::flavors::{request_order, scan};
use crate::ids::ResourceId;
use crate::names::Names;
use crate::queues::layer::QueueLayer;
use crate::reason::{NoFitReason, PendingReason};
use crate::slices;
use crate::state::State;
use crate::topology::layer::TopologyLayer;
use crate::workloads::equivalence_class::members;
use crate::workloads::usage::{SlotUsage, charge};

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
    out.pod_sets.sort_by_key(|one| one.pod_set);
}

/// Assigns the pod sets of one group. Returns false if they do not fit.
fn assign_group(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    members: &[usize],
    out: &mut Assignment,
) -> bool {
    let requests = group_requests(&state.names, &state.queues, attempt, members);
    let mut found = GroupAssignment {
        probe: are_empty(attempt, members).then(|| probe(state, attempt, members, out)),
        ..GroupAssignment::default()
    };
    let group_request = GroupRequest { attempt, members, requests: &requests };
    found.assign_resources(state, group_request, &out.usage);
    if found.no_fit {
        out.pending_reason = out.pending_reason.max(found.pending_reason);
    }
    for &member in members {
        push_pod_set(state, attempt, member, &found.chosen, out);
    }
    let start = out.pod_sets.len() - members.len();
    for one in &mut out.pod_sets[start..] {
        (one.no_fit, one.reasons) = (found.no_fit, found.reasons.clone());
        one.trials.clone_from(&found.trials);
    }
    !found.no_fit
}

/// Pod sets that get the same flavors, and their total requests.
#[derive(Debug, Clone, Copy)]
struct GroupRequest<'a> {
    attempt: &'a AssignmentAttempt<'a>,
    members: &'a [usize],
    requests: &'a [(ResourceId, Amount)],
}

/// The flavors of one group of pod sets.
#[derive(Debug, Default)]
struct GroupAssignment {
    /// One entry per resource; empty if some resource has no flavor.
    chosen: SmallVec<[FlavorAssignment; 4]>,
    reasons: SmallVec<[NoFitReason; 1]>,
    no_fit: bool,
    pending_reason: Option<PendingReason>,
    trials: SmallVec<[FlavorTrialResult; 1]>,
    /// What a flavor should be able to hold, for pod sets without pods.
    probe: Option<Box<EmptyGroupProbe>>,
}

impl GroupAssignment {
    /// Ends the assignment: some resource has no flavor.
    fn fail(&mut self) {
        self.no_fit = true;
        self.chosen.clear();
    }

    /// Scans one resource group after the other until all requested resources have a flavor.
    fn assign_resources(
        &mut self,
        state: &mut State,
        group_request: GroupRequest<'_>,
        assumed: &SlotUsage,
    ) {
        let GroupRequest { attempt, members, requests } = group_request;
        let groups = Arc::clone(&state.queues.at(attempt.queue).groups);
        let mut done: SmallVec<[usize; 4]> = SmallVec::new();
        for &(resource, amount) in requests {
            let covering = groups.iter().position(|group| group.resources.contains(&resource));
            let Some(index) = covering else {
                // A request of zero needs no quota, so no resource group has to cover it.
                if amount <= Amount::ZERO {
                    continue;
                }
                return self.fail_uncovered(resource, done.is_empty());
            };
            // One scan covers all resources of a resource group, so that they get the same flavor.
            if done.contains(&index) {
                continue;
            }
            let first = done.is_empty();
            done.push(index);
            let probe = self.probe.take();
            let flavor_request = scan::FlavorRequest {
                attempt,
                members,
                group: &groups[index],
                requests,
                probe: probe.as_deref(),
            };
            self.scan_group(state, &flavor_request, assumed, first);
            self.probe = probe;
            if self.no_fit {
                return;
            }
        }
    }

    /// Scans one resource group; `first` if it is the first one.
    fn scan_group(
        &mut self,
        state: &mut State,
        flavor_request: &scan::FlavorRequest<'_>,
        assumed: &SlotUsage,
        first: bool,
    ) {
        let known = self.reasons.len();
        let found = scan::scan(state, flavor_request, assumed, &mut self.reasons);
        self.pending_reason = self.pending_reason.max(found.pending_reason);
        self.trials.extend(found.trials);
        if let Some(flavor_assignments) = found.flavor_assignments {
            self.chosen.extend(flavor_assignments);
            return;
        }
        if flavor_request.attempt.class.allowed.is_some() && first {
            // No flavor was looked at.
            self.pending_reason = self.pending_reason.or(Some(PendingReason::NoMatchingFlavor));
        }
        // Only the failed resource group explains the failure; earlier ones still contribute to the reason.
        self.fail();
        self.reasons.drain(..known);
    }

    /// No resource group covers the resource; `first` if no flavor was looked at before.
    fn fail_uncovered(&mut self, resource: ResourceId, first: bool) {
        self.fail();
        self.reasons = smallvec::smallvec![NoFitReason::ResourceNotCovered(resource)];
        // Upstream gives no reason if it looked at flavors before.
        let reason = first.then_some(PendingReason::NoMatchingFlavor);
        self.pending_reason = self.pending_reason.or(reason);
    }
}

/// One pod of each of these pod sets without pods, and what the Workload requests before them.
#[cold]
fn probe(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    members: &[usize],
    out: &Assignment,
) -> Box<EmptyGroupProbe> {
    let requests = requests_of(&state.names, &state.queues, attempt, members, |_| 1);
    let mut earlier = SlotUsage::new();
    for choice in out.pod_sets.iter().flat_map(|one| &one.flavor_assignments) {
        charge(&mut earlier, choice.slot, choice.amount);
    }
    Box::new(EmptyGroupProbe { requests, earlier })
}

fn group_requests(
    names: &Names,
    queues: &QueueLayer,
    attempt: &AssignmentAttempt<'_>,
    members: &[usize],
) -> PodSetRequests {
    requests_of(names, queues, attempt, members, |member| attempt.count(member))
}

/// Summed requests of so many pods of each pod set.
fn requests_of(
    names: &Names,
    queues: &QueueLayer,
    attempt: &AssignmentAttempt<'_>,
    members: &[usize],
    count: impl Fn(usize) -> i64,
) -> PodSetRequests {
    let mut sums = PodSetRequests::new();
    for &member in members {
        let pod_set = &attempt.class.pod_sets[member];
        for (resource, amount) in queues.requests(attempt.queue, pod_set, count(member)) {
            match sums.iter_mut().find(|(known, _)| *known == resource) {
                Some((_, sum)) => *sum += amount,
                None => sums.push((resource, amount)),
            }
        }
    }
    // The requests of a single pod set are sorted already, but `pods` is appended to them.
    if members.len() > 1 || queues.at(attempt.queue).covers_pods {
        request_order::sort(names, &mut sums);
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
    let mut one = PodSetFlavorAssignment { pod_set: member, count, ..Default::default() };
    let pod_set = &attempt.class.pod_sets[member];
    for (resource, amount) in state.queues.requests(attempt.queue, pod_set, count) {
        let Some(choice) = chosen.iter().find(|choice| choice.resource == resource) else {
            continue;
        };
        // A replacement slice is charged only what it requests beyond the old slice (docs/reference/kueue.md §4.4 step 3).
        let held = attempt
            .replaced_slice
            .and_then(|old| slices::held_amount(&state.workloads, old, &pod_set.name, resource));
        out.borrow = out.borrow.max(choice.borrow);
        charge(&mut out.usage, choice.slot, amount - held.map_or(Amount::ZERO, |(_, held)| held));
        // The whole amount, since an admitted replacement slice is charged all of it (docs/reference/kueue.md §4.13).
        one.flavor_assignments.push(FlavorAssignment { amount, ..*choice });
    }
    let grouped =
        pod_set.topology.as_ref().is_some_and(|flavor_request| flavor_request.group.is_some());
    if grouped && state.queues.requests(attempt.queue, pod_set, count).next().is_none() {
        add_topology_flavors(&state.topology, chosen, &mut one.flavor_assignments);
    }
    out.pod_sets.push(one);
}

/// A grouped pod set without requests that count as quota, e.g. a leader, gets the topology flavor of its group with
/// amount zero, so that it is placed with the group.
fn add_topology_flavors(
    topology: &TopologyLayer,
    chosen: &[FlavorAssignment],
    flavor_assignments: &mut SmallVec<[FlavorAssignment; 4]>,
) {
    let of_machines = |choice: &&FlavorAssignment| topology.tree(choice.flavor).is_some();
    let chosen = chosen.iter().filter(of_machines);
    flavor_assignments
        .extend(chosen.map(|choice| FlavorAssignment { amount: Amount::ZERO, ..*choice }));
}
