//! Why a Workload waits, as values: per pod set and flavor what is missing, how much of it, who uses it, and what would
//! have to change. [`crate::explain::explanation_text`] puts it into words.
//!
//! It is read off the books as the last cycle left them; nothing is evaluated anew and nobody is preempted in thought.
//! Earlier pod sets count where they would go: to the first flavor that has room for them, quota and places. Places are
//! looked for with buffers of their own ([`PlacementProbe`]).
//!
//! Cost: per flavor and resource one look at the queues of the tree and at the holders of the own queue; per flavor with a
//! topology a search for places, and a few more with a look at everybody who holds some if it fails.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::engine::Engine;
use crate::equivalence_class::members;
use crate::explain::quota_shortage::{QuotaShortage, shortage};
use crate::flavors::attempt::AssignmentAttempt;
use crate::flavors::scan::{FlavorRequest, beyond_old, not_allowed, unsuitable};
use crate::ids::{CheckId, FlavorId, QueueId, ResourceId, WorkloadId};
use crate::queues::cluster_queue::{GroupSlots, namespace_matches};
use crate::reason::NoFitReason;
use crate::spec::{PodSetSpec, QueueEligibility, TopologyTiming};
use crate::state::State;
use crate::topology::{PlacementFailure, PlacementProbe, PlacementShortfall, ProbeFailure};
use crate::workloads::record::Workload;
use crate::workloads::usage::{Usage, charge, charged};
use crate::{checks, slices, topology, variants};

/// Why a Workload waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingExplanation {
    /// Which.
    pub workload: WorkloadId,
    /// The queue in which it waits.
    pub queue: Option<QueueId>,
    /// What comes before all capacity.
    pub standing: QueueingStatus,
    /// Its preemption gates are closed: whatever somebody would have to go for is out of its reach.
    pub preemption_gated: bool,
    /// Another variant of the same Workload that is admitted with a better flavor: nothing else is asked then.
    pub better: Option<WorkloadId>,
    /// What each pod set meets; empty where capacity is not the question.
    pub pod_sets: Vec<PodSetExplanation>,
}

/// Where a Workload stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueingStatus {
    /// It holds quota.
    HoldsQuota,
    /// Its LocalQueue does not exist, or is stopped.
    NoLocalQueue,
    /// Its ClusterQueue hands out nobody.
    Inactive(QueueInactiveReason),
    /// It is held back.
    NotEligible(QueueEligibility),
    /// A check sent it back, or away.
    FailedCheck(CheckId),
    /// Its namespace may not use the queue.
    NamespaceMismatch,
    /// It is invalid in itself.
    Invalid,
    /// There is quota, but no cluster has room.
    NoClusterCapacity,
    /// It was refused, and waits for something to change.
    Inadmissible,
    /// It waits for its turn behind so many others.
    Pending(usize),
}

/// Why a ClusterQueue hands out nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueInactiveReason {
    /// It does not exist.
    Missing,
    /// It is stopped.
    Stopped,
    /// Its cohorts are their own ancestors.
    CohortCycle,
    /// A flavor, or the topology of one, does not exist.
    Flavor(FlavorId),
    /// A check does not exist, or its controller does not run.
    Check(CheckId),
    /// Something else that is not the engine's business.
    NotReady,
}

/// What a pod set meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSetExplanation {
    /// Its name.
    pub name: Box<str>,
    /// Its pods.
    pub count: i64,
    /// Resources that no resource group covers.
    pub undeclared: Vec<ResourceId>,
    /// Every flavor that could serve it, in the order in which they are tried.
    pub flavors: Vec<FlavorExplanation>,
    /// It needs places, and the flavors that would serve it have none, or have some in several topologies.
    pub misplaced: Option<NoFitReason>,
}

/// What a pod set meets in a flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlavorExplanation {
    /// Which.
    pub flavor: FlavorId,
    /// Why its pods may not run there, whatever the quota.
    pub unsuitable: Option<NoFitReason>,
    /// What is missing; nothing if it would fit.
    pub shortages: Vec<QuotaShortage>,
    /// Beside quota, pods need places where the flavor has a topology.
    pub places: TopologyExplanation,
}

/// Whether a pod set finds places in the topology of a flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyExplanation {
    /// It needs none: there is no topology, or nobody to place, or the flavor does not suit.
    NotNeeded,
    /// They are looked for later, for a check says so.
    Delayed(TopologyTiming),
    /// It does.
    Fits,
    /// No machines could meet the request.
    InvalidRequest(PlacementFailure),
    /// There are too few.
    Shortfall(Box<PlacementShortfall>),
}

impl FlavorExplanation {
    /// Whether there is enough quota for the pod set.
    pub fn has_quota(&self) -> bool {
        self.unsuitable.is_none() && self.shortages.is_empty()
    }

    /// Whether there is enough quota, and places where they are needed now.
    pub fn fits(&self) -> bool {
        let places = !matches!(
            self.places,
            TopologyExplanation::InvalidRequest(_) | TopologyExplanation::Shortfall(_)
        );
        self.has_quota() && places
    }
}

impl Engine {
    /// Why a Workload waits; `None` for an unknown one.
    pub fn explain_pending(&self, id: WorkloadId) -> Option<PendingExplanation> {
        let state = &self.state;
        let workload = state.workloads.get(id)?;
        let standing = standing(self, id, workload);
        let matters = matches!(
            standing,
            QueueingStatus::Inadmissible
                | QueueingStatus::Pending(_)
                | QueueingStatus::NoClusterCapacity
        );
        let queue = workload.queue;
        let pod_sets = queue.filter(|_| matters).map(|queue| pod_sets(state, id, queue));
        let preemption_gated = matters && state.is_preemption_gated(id);
        let better = queue.filter(|_| matters).and_then(|queue| variants::better(state, id, queue));
        let pod_sets = pod_sets.unwrap_or_default();
        Some(PendingExplanation {
            workload: id,
            queue,
            standing,
            preemption_gated,
            better,
            pod_sets,
        })
    }
}

fn standing(engine: &Engine, id: WorkloadId, workload: &Workload) -> QueueingStatus {
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
    if let Some(why) = inactive(state, queue) {
        return QueueingStatus::Inactive(why);
    }
    if let Some(check) = checks::failed(workload) {
        return QueueingStatus::FailedCheck(check);
    }
    if !namespace_matches(&state.queue(queue).namespaces, &state.namespaces, workload) {
        return QueueingStatus::NamespaceMismatch;
    }
    if workload.invalid.is_some() {
        return QueueingStatus::Invalid;
    }
    if workload.wake.is_some() {
        return QueueingStatus::NoClusterCapacity;
    }
    let ahead = engine.active_workloads(queue).iter().position(|&one| one == id);
    ahead.map_or(QueueingStatus::Inadmissible, QueueingStatus::Pending)
}

fn inactive(state: &State, id: QueueId) -> Option<QueueInactiveReason> {
    let queue = state.queue(id);
    if queue.spec.is_none() {
        return Some(QueueInactiveReason::Missing);
    }
    if queue.stopped {
        return Some(QueueInactiveReason::Stopped);
    }
    // The ring may be newer than the last cycle, which notes it.
    if queue.in_cycle || state.tree.climbs_forever(queue.node) {
        return Some(QueueInactiveReason::CohortCycle);
    }
    let mut flavors = queue.groups.iter().flat_map(|group| &group.flavors).copied();
    let exists = |id: FlavorId| {
        let topology = state.flavor(id).map(|flavor| flavor.topology);
        topology.is_some_and(|one| one.is_none_or(|topology| state.topologies.exists(topology)))
    };
    if let Some(flavor) = flavors.find(|&flavor| !exists(flavor)) {
        return Some(QueueInactiveReason::Flavor(flavor));
    }
    if let Some(check) = checks::inactive(state, queue) {
        return Some(QueueInactiveReason::Check(check));
    }
    (!queue.ready).then_some(QueueInactiveReason::NotReady)
}

fn pod_sets(state: &State, id: WorkloadId, queue: QueueId) -> Vec<PodSetExplanation> {
    let class = state.class_of(id);
    let old = slices::replaced(state, id, queue);
    let attempt = AssignmentAttempt {
        workload: id,
        queue,
        class: &class,
        counts: None,
        tried: &[],
        old,
        pins: None,
    };
    let mut earlier = Earlier { taken: Usage::new(), probe: PlacementProbe::new(state, &class) };
    (0..class.pod_sets.len()).map(|index| pod_set(state, &attempt, index, &mut earlier)).collect()
}

/// What earlier pod sets would take.
struct Earlier<'a> {
    taken: Usage,
    probe: PlacementProbe<'a>,
}

/// One pod set; what it would take is added to what earlier ones take.
fn pod_set(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    index: usize,
    earlier: &mut Earlier<'_>,
) -> PodSetExplanation {
    let spec = &attempt.class.pod_sets[index];
    let has = |resource| slices::held(state, attempt.old?, &spec.name, resource);
    let mut requests: SmallVec<[(ResourceId, Amount); 4]> = state
        .requests(attempt.queue, spec, spec.count)
        .filter(|one| one.1 > Amount::ZERO)
        .collect();
    for (resource, amount) in &mut requests {
        *amount -= has(*resource).map_or(Amount::ZERO, |(_, held)| held);
    }
    requests.retain(|one| one.1 > Amount::ZERO);
    let groups = &state.queue(attempt.queue).groups;
    let covered = |resource: &ResourceId| groups.iter().any(|one| one.resources.contains(resource));
    let undeclared = requests.iter().map(|one| one.0).filter(|one| !covered(one)).collect();
    let mut flavors = Vec::new();
    let mut given: SmallVec<[Option<FlavorId>; 2]> = SmallVec::new();
    for group in groups.iter() {
        let wanted = requests.iter().filter(|one| group.resources.contains(&one.0));
        let wanted: SmallVec<[_; 4]> = wanted.copied().collect();
        if wanted.is_empty() {
            continue;
        }
        let wish = FlavorRequest { attempt, members: &[index], group, requests: &wanted };
        let all: Vec<FlavorExplanation> =
            (0..group.flavors.len()).map(|at| flavor(state, &wish, at, earlier)).collect();
        let first = all.iter().position(FlavorExplanation::fits);
        if let Some(first) = first.or_else(|| all.iter().position(FlavorExplanation::has_quota)) {
            take(group, first, &wanted, &mut earlier.taken);
            if all[first].places == TopologyExplanation::Fits {
                earlier.probe.assume(index, all[first].flavor);
            }
        }
        given.push(first.map(|first| all[first].flavor));
        flavors.extend(all);
    }
    let misplaced = given.into_iter().collect::<Option<SmallVec<[FlavorId; 2]>>>();
    let misplaced = misplaced.and_then(|given| misplaced_with(state, attempt.queue, spec, &given));
    PodSetExplanation { name: spec.name.clone(), count: spec.count, undeclared, flavors, misplaced }
}

/// Why pods that get these flavors cannot be placed anywhere. Who asks for nothing stands with its group.
fn misplaced_with(
    state: &State,
    queue: QueueId,
    spec: &PodSetSpec,
    given: &[FlavorId],
) -> Option<NoFitReason> {
    let asks = spec.asks_for_topology() || state.queue(queue).topology_only;
    let follows = given.is_empty() && spec.topology.as_ref().is_some_and(|one| one.group.is_some());
    let later = given
        .iter()
        .any(|&flavor| checks::topology_timing(state, queue, flavor) > TopologyTiming::WithQuota);
    let matters = asks && spec.count > 0 && !follows && !later;
    matters.then(|| topology::only_flavor(state, queue, given.iter().copied()).err()).flatten()
}

fn flavor(
    state: &State,
    wish: &FlavorRequest<'_>,
    at: usize,
    earlier: &mut Earlier<'_>,
) -> FlavorExplanation {
    let flavor = wish.group.flavors[at];
    // A group gets one flavor, which has to suit all of it.
    let together = members(wish.attempt.class, wish.members[0]);
    let whole = FlavorRequest { members: &together, ..*wish };
    let of_old_slice =
        |&(resource, amount): &_| beyond_old(state, wish, resource, flavor, amount).1;
    let unsuitable = not_allowed(wish, flavor)
        .or_else(|| unsuitable(state, &whole, flavor))
        .or_else(|| wish.requests.iter().find_map(of_old_slice));
    let mut shortages = Vec::new();
    for &(resource, request) in wish.requests.iter().filter(|_| unsuitable.is_none()) {
        if let Some(slot) = wish.group.slot(at, resource) {
            let beside = charged(&earlier.taken, slot);
            shortages.extend(shortage(state, wish.attempt, slot, beside, request));
        }
    }
    let suits = unsuitable.is_none() && earlier.probe.has_topology(flavor);
    let places =
        if suits { places(state, wish, flavor, earlier) } else { TopologyExplanation::NotNeeded };
    FlavorExplanation { flavor, unsuitable, shortages, places }
}

fn places(
    state: &State,
    wish: &FlavorRequest<'_>,
    id: FlavorId,
    earlier: &mut Earlier<'_>,
) -> TopologyExplanation {
    let pod_set = wish.members[0];
    match checks::topology_timing(state, wish.attempt.queue, id) {
        _ if wish.attempt.class.pod_sets[pod_set].count == 0 => TopologyExplanation::NotNeeded,
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

fn take(group: &GroupSlots, at: usize, wanted: &[(ResourceId, Amount)], taken: &mut Usage) {
    for &(resource, amount) in wanted {
        if let Some(slot) = group.slot(at, resource) {
            charge(taken, slot, amount);
        }
    }
}
