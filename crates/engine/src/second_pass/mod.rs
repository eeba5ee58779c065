//! The second pass: topology assignments for Workloads that already have a quota reservation.
//!
//! If an admission check provides the nodes, quota is reserved first, and topology is assigned when all checks are
//! ready: with the assigned flavors, without charging quota. If the domains are in use, the second pass preempts by
//! the same policies as for heads, and a later attempt assigns the domains. It preempts nothing if pods that are to leave
//! and Workloads that are evicted already free domains. An assignment stands until its write
//! fails; an object observed without it meanwhile does not remove it. [`needed`] says which Workloads need a second pass;
//! delays and attempts are in the workload layer. Source: docs/reference/kueue.md §3.7.
//!
//! Cost: nothing without second passes; one topology search per attempt, and one per preemption candidate considered.

pub(crate) mod needed;

use crate::cycle::preparation;
use crate::engine::Engine;
use crate::flavors::assignment::{Assignment, FlavorAssignmentMode, PodSetFlavorAssignment};
use crate::flavors::attempt::AssignmentAttempt;
use crate::ids::{QueueId, WorkloadId};
use crate::preemption::request::PreemptionRequest;
use crate::preemption::search;
use crate::preemption::simulation::{are_evicted, simulate_leaving};
use crate::preemption::target::{PreemptionTarget, WorkloadIds, ids};
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::reason::NoFitReason;
use crate::reservations::{mark_evicted, set_pod_sets};
use crate::second_pass::needed::is_delayed_here;
use crate::spec::PodSetAdmission;
use crate::state::State;
use crate::time::Time;
use crate::topology;
use crate::topology::layer::TopologyLayer;
use crate::workloads::layer::WorkloadLayer;

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondPass {
    /// The Workload.
    pub workload: WorkloadId,
    /// The ClusterQueue of its reservation.
    pub queue: QueueId,
    /// Its admission from now on, or why there is no topology assignment. Without reasons if the ClusterQueue is
    /// inactive.
    pub outcome: Result<Vec<PodSetAdmission>, Vec<NoFitReason>>,
    /// Workloads to preempt before an assignment is possible. Some may be evicted already.
    pub targets: Vec<PreemptionTarget>,
}

impl Engine {
    /// The earliest time at which [`Engine::second_pass`] has something to do, or a failed node is to be replaced.
    pub fn next_second_pass(&self, now: Time) -> Option<Time> {
        let replacement = self.state.topology.node_failures().next_attempt(now);
        self.state.workloads.second_passes().next(now).into_iter().chain(replacement).min()
    }

    /// Whether the next cycle attempts to replace a failed node.
    pub fn has_node_to_replace(&self) -> bool {
        self.state.topology.node_failures().need_replacement()
    }

    /// Makes the attempts whose delay is over. Call it before a cycle: second passes precede heads.
    pub fn second_pass(&mut self, now: Time) -> Vec<SecondPass> {
        let state = &mut self.state;
        // Replacements of nodes are attempted by the cycle.
        let delay = state.settings.node_replacement_delay;
        state.topology.node_failures_mut().pass_time(now, delay);
        if state.workloads.second_passes().is_empty() {
            return Vec::new();
        }
        // A second pass precedes the cycle, which would otherwise apply these changes first.
        preparation::apply_changes(state);
        let ready = ready(&mut state.workloads, now);
        let mut taken = WorkloadIds::new();
        let mut passes = Vec::with_capacity(ready.len());
        for (id, failed) in ready {
            let pass = attempt(state, id, failed, now, &taken);
            // A target is preempted for one second pass; later ones wait for another attempt.
            taken.extend(pass.targets.iter().map(|target| target.workload));
            passes.push(pass);
        }
        passes
    }
}

/// Second passes whose delay is over, with their failed attempts: higher priority first, then older, then by uid.
fn ready(workloads: &mut WorkloadLayer, now: Time) -> Vec<(WorkloadId, u32)> {
    let mut ready = workloads.second_passes_mut().take_ready(now);
    ready.sort_by(|&(left, _), &(right, _)| {
        let (left, right) = (workloads.at(left), workloads.at(right));
        let by_age = left.queued_at.cmp(&right.queued_at);
        right.priority.cmp(&left.priority).then(by_age).then_with(|| left.uid.cmp(&right.uid))
    });
    ready
}

/// Makes one attempt after `failed` failed ones. `taken` are the targets of earlier second passes.
fn attempt(
    state: &mut State,
    id: WorkloadId,
    failed: u32,
    now: Time,
    taken: &[WorkloadId],
) -> SecondPass {
    let workload = state.workloads.at(id);
    let admission = workload
        .admission
        .as_deref()
        .expect("invariant: only reserving Workloads have a second pass");
    let (queue, pod_sets) = (admission.queue, admission.pod_sets.clone());
    // Finished pods need no domains.
    let counts: Vec<i64> = pod_sets.iter().map(|one| one.count - one.reclaimed).collect();
    let class = state.class_of(id);
    let attempt =
        AssignmentAttempt { counts: Some(&counts), ..AssignmentAttempt::new(id, queue, &class) };
    let mut assignment = held(&mut state.quota, &state.queues, queue, &pod_sets, &counts);
    let active = state.queues.at(queue).active;
    // An inactive ClusterQueue gets no topology assignment; the attempt is repeated later.
    if active {
        topology::assign(state, &attempt, &mut assignment);
    }
    if active && assignment.mode() == FlavorAssignmentMode::Fit {
        let outcome =
            Ok(settle(&mut state.workloads, &mut state.topology, id, pod_sets, &mut assignment));
        return SecondPass { workload: id, queue, outcome, targets: Vec::new() };
    }
    state.workloads.second_passes_mut().delay(id, now, failed + 1);
    let preempts = assignment.mode() == FlavorAssignmentMode::Preempt && {
        let held = held(&mut state.quota, &state.queues, queue, &pod_sets, &counts);
        !awaits_leaving_pods(state, &attempt, held)
    };
    let targets =
        if preempts { preemption_targets(state, &attempt, &assignment, taken) } else { Vec::new() };
    let reasons = assignment.pod_sets.into_iter().flat_map(|one| one.reasons);
    SecondPass { workload: id, queue, outcome: Err(reasons.collect()), targets }
}

/// Applies the topology assignments that were found.
fn settle(
    workloads: &mut WorkloadLayer,
    topology: &mut TopologyLayer,
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
    set_pod_sets(workloads, topology, id, pod_sets.clone());
    workloads.second_passes_mut().assign(id, placed);
    pod_sets
}

/// Whether the domains are free once pods that are to leave have left and Workloads that are evicted already are gone: to preempt
/// more would not free them earlier (docs/reference/kueue.md §4.11).
fn awaits_leaving_pods(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    mut held: Assignment,
) -> bool {
    if !state.topology.has_leaving() {
        return false;
    }
    simulate_leaving(state, |state| {
        topology::assign(state, attempt, &mut held);
        match held.mode() {
            FlavorAssignmentMode::Fit => true,
            FlavorAssignmentMode::Preempt => {
                let targets = ids(&find_targets(state, attempt, &held));
                !targets.is_empty() && are_evicted(&state.workloads, &targets)
            }
            FlavorAssignmentMode::DeferredFit | FlavorAssignmentMode::NoFit => false,
        }
    })
}

/// Preempts for the topology assignment; nothing if a preemption gate is closed or a target belongs to an earlier second pass.
fn preemption_targets(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &Assignment,
    taken: &[WorkloadId],
) -> Vec<PreemptionTarget> {
    if state.is_preemption_gated(attempt.workload) {
        return Vec::new();
    }
    let targets = find_targets(state, attempt, assignment);
    if targets.iter().any(|target| taken.contains(&target.workload)) {
        return Vec::new();
    }
    // Targets count as evicted at once, also for the cycle that follows.
    for target in &targets {
        mark_evicted(state, target.workload);
    }
    targets
}

/// Finds preemption targets for the topology assignment. Upstream requests the quota once more although it is reserved; if that much is
/// not available, more targets are needed, or there are none.
fn find_targets(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &Assignment,
) -> Vec<PreemptionTarget> {
    let mut targets = Vec::new();
    if let Some(admission) = state.workloads.admission(attempt.workload) {
        let (usage, contested) = (admission.usage.clone(), assignment.contested());
        let request = PreemptionRequest {
            attempt,
            usage: &usage,
            contested: &contested,
            assignment: Some(assignment),
        };
        search::find(state, &request, &mut targets);
    }
    targets
}

/// The reservation as an assignment, in which only pod sets without a topology assignment are searched.
fn held(
    quota: &mut QuotaLayer,
    queues: &QueueLayer,
    queue: QueueId,
    pod_sets: &[PodSetAdmission],
    counts: &[i64],
) -> Assignment {
    let mut assignment = Assignment::default();
    for (index, (held, &count)) in pod_sets.iter().zip(counts).enumerate() {
        // The search leaves marked pod sets out: here those whose domains are assigned already, or
        // on the worker.
        let delayed_topology = !is_delayed_here(queues, queue, held);
        let assigned = PodSetFlavorAssignment::held(quota, index, held);
        let assigned = PodSetFlavorAssignment { count, delayed_topology, ..assigned };
        assignment.pod_sets.push(assigned);
    }
    assignment
}
