//! Collects why a Workload is pending, as values: per pod set and flavor what is missing, how much, which queues
//! use it and what would help. [`explanation_text`](mod@super::explanation_text) renders it.
//!
//! The explanation reads the state as the last cycle left it; it runs no nomination and searches no preemption
//! targets. Earlier pod sets count in the first flavor that fits them, quota and topology. Topology searches use
//! buffers of their own ([`PlacementProbe`]).
//! Cost: per flavor and resource one pass over the queues of the cohort tree and the Workloads of the own queue;
//! per flavor with a topology one search, and a few more with a pass over all Workloads with quota if it fails.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::engine::Engine;
use crate::explain::explanation::{
    FlavorExplanation, PendingExplanation, PodSetExplanation, QueueInactiveReason, QueueingStatus,
    TopologyExplanation,
};
use crate::explain::quota_shortage::shortage;
use crate::flavors::attempt::AssignmentAttempt;
use crate::flavors::scan::{FlavorRequest, beyond_replaced_slice, not_allowed, unsuitable};
use crate::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::queues::cluster_queue::GroupSlots;
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::reason::NoFitReason;
use crate::slices::SliceClaims;
use crate::spec::{PodSetSpec, QueueEligibility, TopologyTiming};
use crate::state::State;
use crate::topology::layer::TopologyLayer;
use crate::topology::{PlacementProbe, ProbeFailure};
use crate::workloads::equivalence_class::members;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::WorkloadRecord;
use crate::workloads::usage::{SlotUsage, charge, charged};
use crate::{checks, slices, topology, variants};

impl Engine {
    /// Why a Workload is pending; `None` if it is unknown. Status only for a Workload that has quota or is not
    /// eligible.
    pub fn explain_pending(&self, id: WorkloadId) -> Option<PendingExplanation> {
        let state = &self.state;
        let workload = state.workloads.get(id)?;
        let status = queueing_status(self, id, workload);
        let matters = matches!(
            status,
            QueueingStatus::Inadmissible
                | QueueingStatus::Pending(_)
                | QueueingStatus::NoClusterCapacity
        );
        let queue = workload.queue;
        let pod_sets = queue.filter(|_| matters).map(|queue| pod_sets(state, id, queue));
        let preemption_gated = matters && state.is_preemption_gated(id);
        let better =
            queue.filter(|_| matters).and_then(|queue| variants::better_variant(state, id, queue));
        let pod_sets = pod_sets.unwrap_or_default();
        Some(PendingExplanation { workload: id, queue, status, preemption_gated, better, pod_sets })
    }
}

fn queueing_status(engine: &Engine, id: WorkloadId, workload: &WorkloadRecord) -> QueueingStatus {
    let state = &engine.state;
    if workload.admission.is_some() {
        return QueueingStatus::HoldsQuota;
    }
    if workload.eligibility != QueueEligibility::Eligible {
        return QueueingStatus::NotEligible(workload.eligibility);
    }
    let Some(queue) = workload.queue else {
        return QueueingStatus::NoLocalQueue;
    };
    if let Some(why) = inactive(&state.quota, &state.topology, &state.queues, queue) {
        return QueueingStatus::Inactive(why);
    }
    if let Some(check) = checks::failed(workload) {
        return QueueingStatus::FailedCheck(check);
    }
    if !state.queues.matches_namespace(queue, workload) {
        return QueueingStatus::NamespaceMismatch;
    }
    if workload.invalid.is_some() {
        return QueueingStatus::Invalid;
    }
    if workload.awaited_capacity.is_some() {
        return QueueingStatus::NoClusterCapacity;
    }
    let ahead = engine.active_workloads(queue).iter().position(|&one| one == id);
    ahead.map_or(QueueingStatus::Inadmissible, QueueingStatus::Pending)
}

fn inactive(
    quota: &QuotaLayer,
    topology: &TopologyLayer,
    queues: &QueueLayer,
    id: QueueId,
) -> Option<QueueInactiveReason> {
    let queue = queues.at(id);
    if queue.spec.is_none() {
        return Some(QueueInactiveReason::Missing);
    }
    if queue.stopped {
        return Some(QueueInactiveReason::Stopped);
    }
    // A cycle may be newer than the last scheduling cycle, which sets `in_cycle`.
    if queue.in_cycle || quota.tree().is_in_cohort_cycle(queue.node) {
        return Some(QueueInactiveReason::CohortCycle);
    }
    let mut flavors = queue.groups.iter().flat_map(|group| &group.flavors).copied();
    let exists = |id: FlavorId| {
        let exists = |one| topology.topologies().exists(one);
        quota.flavor(id).is_some_and(|flavor| flavor.topology.is_none_or(exists))
    };
    if let Some(flavor) = flavors.find(|&flavor| !exists(flavor)) {
        return Some(QueueInactiveReason::Flavor(flavor));
    }
    if let Some(check) = checks::inactive(queues, queue) {
        return Some(QueueInactiveReason::Check(check));
    }
    (!queue.ready).then_some(QueueInactiveReason::NotReady)
}

fn pod_sets(state: &State, id: WorkloadId, queue: QueueId) -> Vec<PodSetExplanation> {
    let class = state.class_of(id);
    let replaced_slice = SliceClaims::new(&state.names, &state.workloads).replaced(id, queue);
    let attempt = AssignmentAttempt { replaced_slice, ..AssignmentAttempt::new(id, queue, &class) };
    let mut earlier =
        EarlierPodSets { usage: SlotUsage::new(), probe: PlacementProbe::new(state, &class) };
    (0..class.pod_sets.len()).map(|index| pod_set(state, &attempt, index, &mut earlier)).collect()
}

/// What earlier pod sets of the Workload would use.
struct EarlierPodSets<'a> {
    usage: SlotUsage,
    probe: PlacementProbe<'a>,
}

/// Requests of a pod set beyond what the replaced slice holds, per resource.
type Requests = SmallVec<[(ResourceId, Amount); 4]>;

/// Explains one pod set, and adds what it would use to `earlier`.
fn pod_set(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    index: usize,
    earlier: &mut EarlierPodSets<'_>,
) -> PodSetExplanation {
    let spec = &attempt.class.pod_sets[index];
    let requests = requests(&state.workloads, &state.queues, attempt, spec);
    let groups = &state.queues.at(attempt.queue).groups;
    let covered = |resource: &ResourceId| groups.iter().any(|one| one.resources.contains(resource));
    let uncovered = requests.iter().map(|one| one.0).filter(|one| !covered(one)).collect();
    let mut flavors = Vec::new();
    let mut assigned: SmallVec<[Option<FlavorId>; 2]> = SmallVec::new();
    for group in groups.iter() {
        let in_group = requests.iter().filter(|one| group.resources.contains(&one.0));
        let in_group: Requests = in_group.copied().collect();
        if !in_group.is_empty() {
            let members: &[usize] = &[index];
            let request =
                FlavorRequest { attempt, members, group, requests: &in_group, probe: None };
            let (explained, first) = resource_group(state, &request, earlier);
            assigned.push(first);
            flavors.extend(explained);
        }
    }
    let assigned = assigned.into_iter().collect::<Option<SmallVec<[FlavorId; 2]>>>();
    let topology_error =
        assigned.and_then(|assigned| topology_error(state, attempt, index, &assigned));
    let (name, count) = (spec.name.clone(), spec.count);
    PodSetExplanation { name, count, uncovered, flavors, topology_error }
}

fn requests(
    workloads: &WorkloadLayer,
    queues: &QueueLayer,
    attempt: &AssignmentAttempt<'_>,
    spec: &PodSetSpec,
) -> Requests {
    let held =
        |resource| slices::held_amount(workloads, attempt.replaced_slice?, &spec.name, resource);
    let all = queues.requests(attempt.queue, spec, spec.count);
    let mut requests: Requests = all.filter(|one| one.1 > Amount::ZERO).collect();
    for (resource, amount) in &mut requests {
        *amount -= held(*resource).map_or(Amount::ZERO, |(_, held)| held);
    }
    // What the replaced slice holds already cannot be short.
    requests.retain(|one| one.1 > Amount::ZERO);
    requests
}

/// Explains all flavors of a resource group, and assumes the first flavor that fits; if none does, the first with
/// enough quota.
fn resource_group(
    state: &State,
    request: &FlavorRequest<'_>,
    earlier: &mut EarlierPodSets<'_>,
) -> (Vec<FlavorExplanation>, Option<FlavorId>) {
    let group = request.group;
    let all: Vec<FlavorExplanation> =
        (0..group.flavors.len()).map(|at| flavor(state, request, at, earlier)).collect();
    let first = all.iter().position(FlavorExplanation::fits);
    // Without a fitting flavor, later pod sets are explained beside the first with enough quota.
    let first = first.or_else(|| all.iter().position(FlavorExplanation::has_quota));
    if let Some(first) = first {
        charge_requests(group, first, request.requests, &mut earlier.usage);
        if all[first].topology == TopologyExplanation::Fits {
            earlier.probe.assume(request.members[0], all[first].flavor);
        }
    }
    let flavor = first.map(|first| all[first].flavor);
    (all, flavor)
}

/// Why pods with these flavors cannot get a topology assignment. A pod set without a request of its own follows its
/// group.
fn topology_error(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    pod_set: usize,
    assigned: &[FlavorId],
) -> Option<NoFitReason> {
    let (queue, spec) = (attempt.queue, &attempt.class.pod_sets[pod_set]);
    let asks = spec.asks_for_topology() || state.queues.at(queue).topology_only;
    let follows = assigned.is_empty() && spec.group().is_some();
    let later = assigned.iter().any(|&flavor| {
        checks::topology_timing(&state.queues, queue, flavor) > TopologyTiming::WithQuota
    });
    if !asks || spec.count == 0 {
        return None;
    }
    let count = |at: usize| attempt.class.pod_sets[at].count;
    if let Some(reason) = topology::refusal(attempt.class, pod_set, later, count) {
        return Some(reason);
    }
    if follows || later {
        return None;
    }
    let State { names, topology, queues, .. } = state;
    topology::only_flavor(names, topology, queues, queue, assigned.iter().copied()).err()
}

fn flavor(
    state: &State,
    request: &FlavorRequest<'_>,
    at: usize,
    earlier: &mut EarlierPodSets<'_>,
) -> FlavorExplanation {
    let flavor = request.group.flavors[at];
    // A pod set group gets one flavor, which must suit all its pod sets.
    let group_members = members(request.attempt.class, request.members[0]);
    let whole = FlavorRequest { members: &group_members, ..*request };
    let differs_from_replaced = |&(resource, amount): &_| {
        beyond_replaced_slice(&state.workloads, request, resource, flavor, amount).1
    };
    let unsuitable = not_allowed(request, flavor)
        .or_else(|| unsuitable(state, &whole, flavor))
        .or_else(|| request.requests.iter().find_map(differs_from_replaced));
    let mut shortages = Vec::new();
    for &(resource, amount) in request.requests.iter().filter(|_| unsuitable.is_none()) {
        if let Some(slot) = request.group.slot(at, resource) {
            let earlier_usage = charged(&earlier.usage, slot);
            shortages.extend(shortage(state, request.attempt, slot, earlier_usage, amount));
        }
    }
    let suits = unsuitable.is_none() && earlier.probe.has_topology(flavor);
    let topology = if suits {
        explain_topology(&state.queues, request, flavor, earlier)
    } else {
        TopologyExplanation::NotNeeded
    };
    FlavorExplanation { flavor, unsuitable, shortages, topology }
}

fn explain_topology(
    queues: &QueueLayer,
    request: &FlavorRequest<'_>,
    id: FlavorId,
    earlier: &mut EarlierPodSets<'_>,
) -> TopologyExplanation {
    let pod_set = request.members[0];
    match checks::topology_timing(queues, request.attempt.queue, id) {
        _ if request.attempt.class.pod_sets[pod_set].count == 0 => TopologyExplanation::NotNeeded,
        TopologyTiming::WithQuota => match earlier.probe.probe(pod_set, id) {
            Ok(()) => TopologyExplanation::Fits,
            Err(ProbeFailure::InvalidRequest(reason)) => {
                TopologyExplanation::InvalidRequest(reason)
            }
            Err(ProbeFailure::Shortfall(shortfall)) => TopologyExplanation::Shortfall(shortfall),
        },
        later => TopologyExplanation::Delayed(later),
    }
}

fn charge_requests(
    group: &GroupSlots,
    at: usize,
    requests: &[(ResourceId, Amount)],
    usage: &mut SlotUsage,
) {
    for &(resource, amount) in requests {
        if let Some(slot) = group.slot(at, resource) {
            charge(usage, slot, amount);
        }
    }
}
