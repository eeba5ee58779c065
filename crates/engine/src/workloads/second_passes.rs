//! Second passes: Workloads with quota whose topology assignment is delayed until their admission checks are ready.
//!
//! A second pass begins one second after the checks are ready. A failed attempt is repeated after 1, 2, 4, … seconds, at
//! most 30. The table also keeps which pod sets got a topology assignment that is not written yet, since the object may
//! arrive without it meanwhile. Source: docs/reference/kueue.md §3.7.

use std::collections::BTreeMap;

use crate::ids::WorkloadId;
use crate::spec::AdmissionSpec;
use crate::time::Time;
use crate::workloads::admission::AdmissionRecord;

/// Nanoseconds of one second: the first delay, and the unit of the others.
const SECOND: i64 = 1_000_000_000;

/// The longest delay, in nanoseconds.
const MAX_DELAY: i64 = 30 * SECOND;

/// State of one second pass.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SecondPassState {
    /// The first delay has not started: no time was given since the Workload entered the table.
    New,
    /// The next attempt is made at `until`, after `failed` failed attempts.
    Delayed { until: Time, failed: u32 },
    /// Indices of the pod sets whose topology assignment is found and not written yet.
    Assigned(Vec<usize>),
}

/// The second passes of all Workloads.
#[derive(Debug, Default, Clone)]
pub(crate) struct SecondPasses(BTreeMap<WorkloadId, SecondPassState>);

impl SecondPasses {
    /// True if no Workload has a second pass.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the second pass of a Workload.
    pub(crate) fn remove(&mut self, id: WorkloadId) {
        self.0.remove(&id);
    }

    /// Starts or ends the second pass of a Workload. A topology assignment that is not written yet stays.
    pub(crate) fn update(&mut self, id: WorkloadId, needed: bool) {
        match self.0.get(&id) {
            // The object may be observed without the assignment until its write arrives.
            Some(SecondPassState::Assigned(_)) => {}
            // A check left Ready, or the Workload is being evicted.
            Some(_) if !needed => self.remove(id),
            None if needed => {
                self.0.insert(id, SecondPassState::New);
            }
            _ => {}
        }
    }

    /// Ends a second pass whose topology assignment is written.
    pub(crate) fn written(&mut self, id: WorkloadId) {
        if self.assigned(id).is_some() {
            self.0.remove(&id);
        }
    }

    /// Pod sets of a Workload whose topology assignment is found and not written yet.
    pub(crate) fn assigned(&self, id: WorkloadId) -> Option<&[usize]> {
        match self.0.get(&id) {
            Some(SecondPassState::Assigned(pod_sets)) => Some(pod_sets),
            _ => None,
        }
    }

    /// Records the pod sets that got a topology assignment.
    pub(crate) fn assign(&mut self, id: WorkloadId, pod_sets: Vec<usize>) {
        self.0.insert(id, SecondPassState::Assigned(pod_sets));
    }

    /// Delays the next attempt after the `failed`-th failure.
    pub(crate) fn delay(&mut self, id: WorkloadId, now: Time, failed: u32) {
        let until = Time(now.0 + delay(failed));
        self.0.insert(id, SecondPassState::Delayed { until, failed });
    }

    /// Starts the first delay of new second passes, and returns those whose delay is over with their failed attempts.
    pub(crate) fn take_ready(&mut self, now: Time) -> Vec<(WorkloadId, u32)> {
        let mut ready = Vec::new();
        for (&id, pass) in &mut self.0 {
            match *pass {
                SecondPassState::New => {
                    *pass = SecondPassState::Delayed { until: Time(now.0 + SECOND), failed: 0 };
                }
                SecondPassState::Delayed { until, failed } if until <= now => {
                    ready.push((id, failed));
                }
                SecondPassState::Delayed { .. } | SecondPassState::Assigned(_) => {}
            }
        }
        ready
    }

    /// The earliest time of an attempt; `now` if a first delay has not started.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        let times = self.0.values().filter_map(|pass| match *pass {
            SecondPassState::New => Some(now),
            SecondPassState::Delayed { until, .. } => Some(until),
            SecondPassState::Assigned(_) => None,
        });
        times.min()
    }

    /// Whether the topology assignment of a Workload is still to be found.
    pub(crate) fn is_pending(&self, id: WorkloadId) -> bool {
        self.0.get(&id).is_some_and(|pass| !matches!(pass, SecondPassState::Assigned(_)))
    }

    /// Adds topology assignments that are not written yet to an observed admission without them.
    pub(crate) fn complete(
        &self,
        id: WorkloadId,
        current: &AdmissionRecord,
        mut observed: AdmissionSpec,
    ) -> AdmissionSpec {
        for &index in self.assigned(id).unwrap_or_default() {
            let own = current.pod_sets.get(index);
            if let (Some(one), Some(own)) = (observed.pod_sets.get_mut(index), own)
                && one.delayed_topology
            {
                (one.delayed_topology, one.domains) = (false, own.domains.clone());
            }
        }
        observed
    }
}

/// Nanoseconds between the `failed`-th failure and the next attempt.
fn delay(failed: u32) -> i64 {
    SECOND
        .checked_shl(failed)
        .filter(|delay| *delay > 0)
        .map_or(MAX_DELAY, |delay| delay.min(MAX_DELAY))
}
