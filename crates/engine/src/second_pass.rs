//! The second pass: places in topologies for Workloads that hold quota already.
//!
//! Where a check provides the machines, quota is reserved first, and places are looked for when all checks are ready:
//! with the flavors that were assigned, charging nothing. Where all places are taken, those who hold them may have to go,
//! by the same policies as for heads; the places are then taken by a later attempt. An attempt that fails is repeated
//! after one second, two, four, up to thirty. What was found stands until its write fails; what is told without places
//! meanwhile does not take it away. Source: docs/reference/kueue.md §3.7.
//!
//! Cost: nothing while nobody waits; a search in the topology per attempt, and one for each victim that is considered.

use crate::cycle::preparation;
use crate::delayed_topology::{is_delayed_here, set_pod_sets};
use crate::engine::Engine;
use crate::flavors::assignment::{
    Assignment, FlavorAssignment, FlavorAssignmentMode, PodSetAssignment,
};
use crate::flavors::attempt::AssignmentAttempt;
use crate::ids::{QueueId, WorkloadId};
use crate::preemption::request::PreemptionRequest;
use crate::preemption::search;
use crate::preemption::target::{PreemptionTarget, WorkloadIds};
use crate::reason::NoFitReason;
use crate::spec::PodSetAdmission;
use crate::state::State;
use crate::time::Time;
use crate::topology;

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

impl Engine {
    /// Finds places for those whose second pass is due. Call it before a cycle: they come first.
    pub fn second_pass(&mut self, now: Time) -> Vec<SecondPass> {
        let state = &mut self.state;
        if state.second_passes.is_empty() {
            return Vec::new();
        }
        topology::rebuild(state);
        preparation::catch_up(state);
        let ready = ready(state, now);
        let mut taken = WorkloadIds::new();
        let mut passes = Vec::with_capacity(ready.len());
        for (id, failed) in ready {
            let pass = attempt(state, id, failed, now, &taken);
            taken.extend(pass.targets.iter().map(|target| target.workload));
            passes.push(pass);
        }
        passes
    }
}

/// Second passes whose delay is over, with their failed attempts: higher priority first, then older, then by uid.
fn ready(state: &mut State, now: Time) -> Vec<(WorkloadId, u32)> {
    let mut ready = state.second_passes.take_ready(now);
    ready.sort_by(|&(left, _), &(right, _)| {
        let (left, right) = (state.workloads.at(left), state.workloads.at(right));
        let by_age = left.queued_at.cmp(&right.queued_at);
        right.priority.cmp(&left.priority).then(by_age).then_with(|| left.uid.cmp(&right.uid))
    });
    ready
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
    state.second_passes.delay(id, now, failed + 1);
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
    set_pod_sets(state, id, pod_sets.clone());
    state.second_passes.assign(id, placed);
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
    search::find(state, &need, &mut targets);
    if targets.iter().any(|target| taken.contains(&target.workload)) {
        return Vec::new();
    }
    for target in &targets {
        crate::reservations::mark_evicted(state, target.workload);
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
        let delayed_topology = !is_delayed_here(state, queue, one);
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
