//! Entering a reservation into the books. The write that makes it true follows; until it fails, it counts.

use crate::cycle::nominate::Entry;
use crate::spec::PodSetAdmission;
use crate::state::State;
use crate::time::Time;
use crate::workload::Admission;

/// Gives an entry what it was assigned.
pub(super) fn admit(state: &mut State, entry: &mut Entry, now: Time) {
    let pod_sets = entry.assignment.pod_sets.iter().map(|one| PodSetAdmission {
        count: one.count,
        reclaimed: 0,
        resources: one.choices.iter().map(|c| (c.resource, c.flavor, c.amount)).collect(),
        domains: one.domains.clone(),
        unplaced: one.unplaced,
    });
    let admission = Admission {
        queue: entry.queue,
        reserved_at: now,
        evicted: false,
        usage: entry.assignment.usage.clone(),
        pod_sets: pod_sets.collect(),
    };
    state.workloads.at_mut(entry.workload).scan = None;
    crate::apply::start_holding(state, entry.workload, admission);
}

/// Takes back the places in topologies that were assumed within the cycle.
pub(super) fn forget_assumed(state: &mut State, entries: &[Entry]) {
    for entry in entries.iter().rev() {
        crate::topology::forget(state, entry);
    }
}
