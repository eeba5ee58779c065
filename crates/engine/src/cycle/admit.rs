//! Enters quota reservations of a cycle. A reservation counts from now on; if its write fails, it is released again.

use crate::cycle::entry::CycleEntry;
use crate::flavors::assignment::FlavorAssignment;
use crate::spec::PodSetAdmission;
use crate::state::State;
use crate::time::Time;

/// Charges an entry's assignment and gives the Workload its admission.
pub(super) fn admit(state: &mut State, entry: &CycleEntry, now: Time) {
    let mut admission = state.workloads.new_admission();
    (admission.queue, admission.reserved_at) = (entry.queue, now);
    (admission.evicted, admission.taken_over) = (false, false);
    match entry.replaced_slice {
        None => admission.usage.clone_from(&entry.assignment.usage),
        // The assignment charges a replacement slice only the difference; its reservation counts as
        // a whole (docs/reference/kueue.md §4.13).
        Some(_) => admission.usage = entry.assignment.whole_usage(),
    }
    let granted = &entry.assignment.pod_sets;
    admission.pod_sets.resize_with(granted.len(), PodSetAdmission::default);
    let mut too_many = false;
    let asked = entry.class.pod_sets.iter();
    for ((one, granted), asked) in admission.pod_sets.iter_mut().zip(granted).zip(asked) {
        (one.count, one.reclaimed) = (granted.count, (granted.count - asked.count).max(0));
        too_many |= one.reclaimed > 0;
        let resources = granted.flavor_assignments.iter().map(FlavorAssignment::assigned);
        // The admission is a reused one, filled in place.
        one.resources.clear();
        one.resources.extend(resources);
        one.domains.clone_from(&granted.domains);
        one.delayed_topology = granted.delayed_topology;
    }
    if too_many {
        // A partial admission may count finished pods; these use nothing.
        admission.usage = crate::reservations::usage_of(&mut state.quota, &admission.pod_sets);
    }
    state.workloads.set_last_assignment(entry.workload, None);
    crate::reservations::enter_reservation(state, entry.workload, admission);
    crate::admission_fair_sharing::consumption::add_penalty(
        &state.quota,
        &state.workloads,
        &mut state.queues,
        entry.workload,
    );
}

/// Releases the topology usage that entries assumed within the cycle, in reverse order.
pub(super) fn forget_assumed(state: &mut State, entries: &[CycleEntry]) {
    for entry in entries.iter().rev() {
        crate::topology::forget(&state.settings, &state.workloads, &mut state.topology, entry);
    }
}
