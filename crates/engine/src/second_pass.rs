//! The second pass: places in topologies for Workloads that hold quota already.
//!
//! Where a check provides the machines, quota is reserved first, and places are looked for when all checks are ready:
//! with the flavors that were assigned, charging nothing. Where all places are taken, those who hold them may have to go,
//! by the same policies as for heads; the places are then taken by a later attempt. An attempt that fails is repeated
//! after one second, two, four, up to thirty. What was found stands until its write fails; what is told without places
//! meanwhile does not take it away. Source: docs/reference/kueue.md §3.7.
//!
//! Cost: nothing while nobody waits; a search in the topology per attempt, and one for each victim that is considered.

use std::collections::BTreeMap;

use crate::cycle;
use crate::engine::Engine;
use crate::flavors::assign::{
    Assignment, AssignmentAttempt, FlavorAssignment, FlavorAssignmentMode, PodSetAssignment,
};
use crate::ids::{QueueId, WorkloadId};
use crate::preemption::{self, PreemptionRequest, PreemptionTarget, WorkloadIds};
use crate::reason::NoFitReason;
use crate::spec::{AdmissionSpec, CheckState, PodSetAdmission, TopologyTiming};
use crate::state::State;
use crate::time::Time;
use crate::topology;
use crate::workload::{Admission, Workload};

/// The first wait, and the unit of the others: one second.
const SECOND: i64 = 1_000_000_000;

/// No wait is longer.
const LONGEST: i64 = 30 * SECOND;

/// What one attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondPass {
    /// Which Workload.
    pub workload: WorkloadId,
    /// Where it holds quota.
    pub queue: QueueId,
    /// What it holds from now on, or why there are no places. No reason is given where the queue is not active.
    pub outcome: Result<Vec<PodSetAdmission>, Vec<NoFitReason>>,
    /// Who has to go before there are places. Some may be on their way already.
    pub targets: Vec<PreemptionTarget>,
}

/// A Workload on its second pass.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SecondPassState {
    /// Its first wait begins when time is next looked at.
    New,
    /// It waits for its next attempt, after so many that failed.
    Waits { until: Time, failed: u32 },
    /// These of its pod sets have places that are not written yet.
    Placed(Vec<usize>),
}

/// Everybody on a second pass.
#[derive(Debug, Default, Clone)]
pub(crate) struct SecondPasses(BTreeMap<WorkloadId, SecondPassState>);

impl SecondPasses {
    pub(crate) fn forget(&mut self, id: WorkloadId) {
        self.0.remove(&id);
    }

    /// What was found is written.
    pub(crate) fn written(&mut self, id: WorkloadId) {
        if matches!(self.0.get(&id), Some(SecondPassState::Placed(_))) {
            self.0.remove(&id);
        }
    }

    /// Whether places are still to be found.
    pub(crate) fn awaits(&self, id: WorkloadId) -> bool {
        self.0.get(&id).is_some_and(|pass| !matches!(pass, SecondPassState::Placed(_)))
    }

    /// When the next attempt is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let due = self.0.values().filter_map(|pass| match pass {
            SecondPassState::Waits { until, .. } => Some(*until),
            SecondPassState::New | SecondPassState::Placed(_) => None,
        });
        due.min()
    }

    /// What is told of an admission, with the places that were found and are not written yet.
    pub(crate) fn with_places(
        &self,
        id: WorkloadId,
        current: &Admission,
        mut told: AdmissionSpec,
    ) -> AdmissionSpec {
        let Some(SecondPassState::Placed(pod_sets)) = self.0.get(&id) else {
            return told;
        };
        for &index in pod_sets {
            let own = current.pod_sets.get(index);
            if let (Some(one), Some(own)) = (told.pod_sets.get_mut(index), own)
                && one.delayed_topology
            {
                (one.delayed_topology, one.domains) = (false, own.domains.clone());
            }
        }
        told
    }
}

/// Brings the table up to date after a change of a Workload.
pub(crate) fn note(state: &mut State, id: WorkloadId) {
    let needs = state.workloads.get(id).is_some_and(|workload| is_needed(state, workload));
    match state.second_passes.0.get(&id) {
        Some(SecondPassState::Placed(_)) => {}
        Some(_) if !needs => state.second_passes.forget(id),
        None if needs => {
            state.second_passes.0.insert(id, SecondPassState::New);
        }
        _ => {}
    }
}

fn is_needed(state: &State, workload: &Workload) -> bool {
    let Some(admission) = workload.admission.as_deref().filter(|one| !one.evicted) else {
        return false;
    };
    let ready = !workload.checks.is_empty()
        && workload.checks.iter().all(|&(_, state)| state == CheckState::Ready);
    ready && admission.pod_sets.iter().any(|one| waits_here(state, admission.queue, one))
}

fn waits_here(state: &State, queue: QueueId, pod_set: &PodSetAdmission) -> bool {
    let mut flavors = pod_set.resources.iter().map(|(_, flavor, _)| *flavor);
    pod_set.delayed_topology
        && !flavors
            .any(|flavor| crate::checks::places(state, queue, flavor) == TopologyTiming::OnWorker)
}

/// The places could not be written: they are given back, and looked for again. Says whether that was it.
pub(crate) fn take_back(state: &mut State, id: WorkloadId) -> bool {
    let Some(SecondPassState::Placed(found)) = state.second_passes.0.get(&id).cloned() else {
        return false;
    };
    let Some(admission) = state.workloads.at(id).admission.as_deref() else {
        return false;
    };
    let (queue, mut pod_sets) = (admission.queue, admission.pod_sets.clone());
    for index in found {
        if let Some(one) = pod_sets.get_mut(index) {
            one.domains.clear();
            one.delayed_topology = true;
        }
    }
    give(state, id, pod_sets);
    state.wake(queue);
    state.second_passes.forget(id);
    note(state, id);
    true
}

/// Replaces what a holder has, quota unchanged.
fn give(state: &mut State, id: WorkloadId, pod_sets: Vec<PodSetAdmission>) {
    let workload = state.workloads.at_mut(id);
    let class = workload.class;
    let Some(admission) = workload.admission.as_deref_mut() else {
        return;
    };
    state.topologies.release_admission(admission, &class, &state.classes);
    admission.pod_sets = pod_sets;
    state.topologies.charge_admission(admission, &class, &state.classes);
}

impl Engine {
    /// Finds places for those whose second pass is due. Call it before a cycle: they come first.
    pub fn second_pass(&mut self, now: Time) -> Vec<SecondPass> {
        let state = &mut self.state;
        if state.second_passes.0.is_empty() {
            return Vec::new();
        }
        topology::rebuild(state);
        cycle::catch_up(state);
        let due = due(state, now);
        let mut taken = WorkloadIds::new();
        let mut passes = Vec::with_capacity(due.len());
        for (id, failed) in due {
            let pass = attempt(state, id, failed, now, &taken);
            taken.extend(pass.targets.iter().map(|target| target.workload));
            passes.push(pass);
        }
        passes
    }
}

/// Who is due, and how often each has failed: higher priority first, then older, then by uid.
fn due(state: &mut State, now: Time) -> Vec<(WorkloadId, u32)> {
    let mut due = Vec::new();
    for (&id, pass) in &mut state.second_passes.0 {
        match *pass {
            SecondPassState::New => {
                *pass = SecondPassState::Waits { until: Time(now.0 + SECOND), failed: 0 }
            }
            SecondPassState::Waits { until, failed } if until <= now => due.push((id, failed)),
            SecondPassState::Waits { .. } | SecondPassState::Placed(_) => {}
        }
    }
    due.sort_by(|&(left, _), &(right, _)| {
        let (left, right) = (state.workloads.at(left), state.workloads.at(right));
        let by_age = left.queued_at.cmp(&right.queued_at);
        right.priority.cmp(&left.priority).then(by_age).then_with(|| left.uid.cmp(&right.uid))
    });
    due
}

/// One attempt, after so many that failed. Whoever is `taken` goes for somebody else.
fn attempt(
    state: &mut State,
    id: WorkloadId,
    failed: u32,
    now: Time,
    taken: &[WorkloadId],
) -> SecondPass {
    let workload = state.workloads.at(id);
    let admission = workload.admission.as_deref().expect("invariant: only holders are due");
    let (queue, pod_sets) = (admission.queue, admission.pod_sets.clone());
    let counts: Vec<i64> = pod_sets.iter().map(|one| one.count - one.reclaimed).collect();
    let class = state.class_of(id);
    let attempt = AssignmentAttempt {
        workload: id,
        queue,
        class: &class,
        counts: Some(&counts),
        tried: &[],
        old: None,
        pins: None,
    };
    let mut assignment = held(state, queue, &pod_sets, &counts);
    let active = state.queue(queue).active;
    if active {
        topology::assign(state, &attempt, &mut assignment);
    }
    if active && assignment.mode() == FlavorAssignmentMode::Fit {
        let outcome = Ok(settle(state, id, pod_sets, &mut assignment));
        return SecondPass { workload: id, queue, outcome, targets: Vec::new() };
    }
    let next = SecondPassState::Waits { until: Time(now.0 + wait(failed + 1)), failed: failed + 1 };
    state.second_passes.0.insert(id, next);
    let targets = victims(state, &attempt, &assignment, taken);
    let reasons = assignment.pod_sets.into_iter().flat_map(|one| one.reasons);
    SecondPass { workload: id, queue, outcome: Err(reasons.collect()), targets }
}

/// The places that were found are taken.
fn settle(
    state: &mut State,
    id: WorkloadId,
    mut pod_sets: Vec<PodSetAdmission>,
    assignment: &mut Assignment,
) -> Vec<PodSetAdmission> {
    let mut placed = Vec::new();
    for (index, (one, found)) in pod_sets.iter_mut().zip(&mut assignment.pod_sets).enumerate() {
        if !found.delayed_topology {
            (one.delayed_topology, one.domains) = (false, std::mem::take(&mut found.domains));
            placed.push(index);
        }
    }
    give(state, id, pod_sets.clone());
    state.second_passes.0.insert(id, SecondPassState::Placed(placed));
    pod_sets
}

/// Who has to go so that there are places; nobody, if a preemption gate is closed, or if one of them goes for somebody else
/// already. Upstream asks for the quota once more, although it is held: where there is not as much left, more have to go,
/// or nobody can.
fn victims(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &Assignment,
    taken: &[WorkloadId],
) -> Vec<PreemptionTarget> {
    let admission = state.workloads.at(attempt.workload).admission.as_deref();
    let (FlavorAssignmentMode::Preempt, Some(admission)) = (assignment.mode(), admission) else {
        return Vec::new();
    };
    if state.is_preemption_gated(attempt.workload) {
        return Vec::new();
    }
    let (usage, contested) = (admission.usage.clone(), assignment.contested());
    let need = PreemptionRequest {
        attempt,
        usage: &usage,
        contested: &contested,
        assignment: Some(assignment),
    };
    let mut targets = Vec::new();
    preemption::find(state, &need, &mut targets);
    if targets.iter().any(|target| taken.contains(&target.workload)) {
        return Vec::new();
    }
    for target in &targets {
        crate::apply::mark_evicted(state, target.workload);
    }
    targets
}

/// What is held, as an assignment: only pod sets without places are looked at.
fn held(
    state: &mut State,
    queue: QueueId,
    pod_sets: &[PodSetAdmission],
    counts: &[i64],
) -> Assignment {
    let mut assignment = Assignment::default();
    for (one, &count) in pod_sets.iter().zip(counts) {
        let delayed_topology = !waits_here(state, queue, one);
        let flavor_assignments = one.resources.iter().map(|&(resource, flavor, amount)| {
            let slot = state.tree.slot(flavor, resource);
            FlavorAssignment {
                resource,
                flavor,
                slot,
                amount,
                mode: FlavorAssignmentMode::Fit,
                borrow: 0,
                tried: None,
            }
        });
        let flavor_assignments = flavor_assignments.collect();
        let one = PodSetAssignment {
            count,
            flavor_assignments,
            delayed_topology,
            ..PodSetAssignment::default()
        };
        assignment.pod_sets.push(one);
    }
    assignment
}

/// How long to wait after so many failures.
fn wait(failed: u32) -> i64 {
    SECOND.checked_shl(failed).filter(|wait| *wait > 0).map_or(LONGEST, |wait| wait.min(LONGEST))
}
