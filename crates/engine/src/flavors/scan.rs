//! Scans the flavors of one resource group in order, from where the last attempt stopped, until one is good enough.
//! Kueue: `findFlavorForPodSets`.
//!
//! Source: docs/reference/kueue.md §4.4 steps 1-7. Cost: flavors tried times resources, plus a preemption search for
//! each resource whose quota is in use.

use std::ops::Range;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::flavors::assignment::{FlavorAssignment, FlavorTrialResult};
use crate::flavors::attempt::{AssignmentAttempt, NominatedFlavor};
use crate::flavors::empty_pod_sets::{EmptyGroupProbe, beyond_capacity};
use crate::flavors::granular_mode::{GranularMode, PreemptionMode};
use crate::flavors::resource_quota::fit_resource_quota;
use crate::ids::{FlavorId, QueueId, ResourceId};
use crate::queues::cluster_queue::GroupSlots;
use crate::reason::{NoFitReason, PendingReason};
use crate::settings::EngineSettings;
use crate::slices;
use crate::spec::{
    FlavorFungibilityPolicy, FlavorFungibilityPreference, FlavorSpec, FungibilitySpec, PodSetSpec,
};
use crate::state::State;
use crate::topology::topologies::TopologySupport;
use crate::workloads::equivalence_class;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::usage::{SlotUsage, charged};

/// The input of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlavorRequest<'a> {
    pub(crate) attempt: &'a AssignmentAttempt<'a>,
    /// The pod sets that get the same flavor.
    pub(crate) members: &'a [usize],
    pub(crate) group: &'a GroupSlots,
    /// Their total requests.
    pub(crate) requests: &'a [(ResourceId, Amount)],
    /// What a flavor should be able to hold, for pod sets without pods.
    pub(crate) probe: Option<&'a EmptyGroupProbe>,
}

impl FlavorRequest<'_> {
    /// The first requested resource of the group; progress is recorded under it.
    fn first_resource(&self) -> Option<ResourceId> {
        let mut requested = self.requests.iter().map(|(resource, _)| *resource);
        requested.find(|resource| self.group.resources.contains(resource))
    }
}

pub(crate) type FlavorAssignments = SmallVec<[FlavorAssignment; 4]>;

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct ScanResult {
    /// The best flavor, if any is possible.
    pub(crate) flavor_assignments: Option<FlavorAssignments>,
    /// The least severe reason among the flavors that do not fit.
    pub(crate) pending_reason: Option<PendingReason>,
    /// Flavors that do not simply fit.
    pub(crate) trials: SmallVec<[FlavorTrialResult; 1]>,
}

/// A scan in progress.
#[derive(Debug, Default)]
struct FlavorScan {
    best: Option<(GranularMode, FlavorAssignments)>,
    pending_reason: Option<PendingReason>,
    trials: SmallVec<[FlavorTrialResult; 1]>,
}

/// Finds the best flavor for the covered resources.
pub(crate) fn scan(
    state: &mut State,
    flavor_request: &FlavorRequest<'_>,
    assumed: &SlotUsage,
    reasons: &mut SmallVec<[NoFitReason; 1]>,
) -> ScanResult {
    if flavor_request.probe.is_some() {
        return scan_for_probe(state, flavor_request, assumed, reasons);
    }
    let first = first_flavor(&state.settings, flavor_request);
    let end = flavor_request.group.flavors.len();
    scan_range(state, flavor_request, first..end, assumed, reasons)
}

/// Scans flavors for pod sets without pods. Capacity decides about them and not usage, so that every attempt gives them the same
/// flavor: the scan begins with the first one, and leaves nothing to a next attempt.
#[cold]
fn scan_for_probe(
    state: &mut State,
    flavor_request: &FlavorRequest<'_>,
    assumed: &SlotUsage,
    reasons: &mut SmallVec<[NoFitReason; 1]>,
) -> ScanResult {
    let end = flavor_request.group.flavors.len();
    let known = reasons.len();
    let mut found = scan_range(state, flavor_request, 0..end, assumed, reasons);
    if found.flavor_assignments.is_none() {
        reasons.truncate(known);
        let any = FlavorRequest { probe: None, ..*flavor_request };
        found = scan_range(state, &any, 0..end, assumed, reasons);
    }
    // Without the gate an entry with an assignment counts as unfinished all the same.
    if state.settings.flavor_fungibility {
        let assigned = found.flavor_assignments.iter_mut().flatten();
        assigned.for_each(|choice| choice.tried = None);
    }
    found
}

fn scan_range(
    state: &mut State,
    flavor_request: &FlavorRequest<'_>,
    flavors: Range<usize>,
    assumed: &SlotUsage,
    reasons: &mut SmallVec<[NoFitReason; 1]>,
) -> ScanResult {
    let mut found = FlavorScan::default();
    let mut last = None;
    let known = reasons.len();
    for index in flavors {
        last = Some(index);
        if found.try_flavor(state, flavor_request, index, assumed, reasons) {
            break;
        }
    }
    let FlavorScan { best, pending_reason, trials } = found;
    let Some((granular_mode, mut flavor_assignments)) = best else {
        return ScanResult { flavor_assignments: None, pending_reason, trials };
    };
    note_progress(&state.settings, flavor_request, last, &mut flavor_assignments);
    if granular_mode.preemption_mode == PreemptionMode::Fit {
        // A fit needs no reasons.
        reasons.truncate(known);
    }
    ScanResult { flavor_assignments: Some(flavor_assignments), pending_reason, trials }
}

impl FlavorScan {
    /// Tries one flavor. Returns whether it is good enough to end the scan.
    fn try_flavor(
        &mut self,
        state: &mut State,
        flavor_request: &FlavorRequest<'_>,
        index: usize,
        assumed: &SlotUsage,
        reasons: &mut SmallVec<[NoFitReason; 1]>,
    ) -> bool {
        let flavor = flavor_request.group.flavors[index];
        let known = reasons.len();
        if let Some((reason, pending)) = exclusion(state, flavor_request, flavor) {
            reasons.extend(reason);
            // A flavor that is skipped (§4.4 step 1) is not looked at.
            if let Some(pending) = pending {
                self.note_reason(pending);
                self.note_trial(flavor, NO_MATCH, &reasons[known..]);
            }
            return false;
        }
        if let Some(probe) = flavor_request.probe
            && self.fails_probe(state, flavor_request, probe, index, reasons)
        {
            return false;
        }
        let fungibility = state.queues.at(flavor_request.attempt.queue).flavor_fungibility;
        let trial = FlavorTrial { index, assumed, preference: fungibility.preference };
        let (worst, flavor_assignments) = fit_flavor(state, flavor_request, &trial, reasons);
        self.note_trial(flavor, worst, &reasons[known..]);
        if let PreemptionMode::NoFit(found) = worst.preemption_mode {
            self.note_reason(found);
            return false;
        }
        // Taken at once, without a comparison with the flavors before it (§4.4 step 5).
        let is_last = is_good_enough(&state.settings, worst, fungibility);
        // Only a strictly better flavor replaces the best one: the first wins ties (§4.4 step 6).
        let is_best =
            |best: &(GranularMode, _)| is_better(&state.settings, worst, best.0, fungibility);
        if is_last || self.best.as_ref().is_none_or(is_best) {
            self.best = Some((worst, flavor_assignments));
        }
        is_last
    }

    /// Whether a flavor could never hold the probe.
    #[cold]
    fn fails_probe(
        &mut self,
        state: &State,
        flavor_request: &FlavorRequest<'_>,
        probe: &EmptyGroupProbe,
        index: usize,
        reasons: &mut SmallVec<[NoFitReason; 1]>,
    ) -> bool {
        let beyond = beyond_capacity(state, flavor_request, probe, index);
        if beyond.is_empty() {
            return false;
        }
        self.note_reason(PendingReason::ExceedsMaxQuota);
        let mode = GranularMode::no_fit(PendingReason::ExceedsMaxQuota);
        self.note_trial(flavor_request.group.flavors[index], mode, &beyond);
        reasons.extend(beyond);
        true
    }

    /// Keeps what a flavor gave, for Events.
    fn note_trial(&mut self, flavor: FlavorId, mode: GranularMode, reasons: &[NoFitReason]) {
        self.trials.extend(FlavorTrialResult::notable(flavor, mode, reasons));
    }

    /// Keeps the least severe reason.
    fn note_reason(&mut self, reason: PendingReason) {
        self.pending_reason = Some(self.pending_reason.map_or(reason, |old| old.min(reason)));
    }
}

/// Why a flavor is not tried, with the pending reason. Flavors that are skipped (§4.4 step 1) give no pending reason;
/// those that fail a static check (step 2) give NoMatchingFlavor.
fn exclusion(
    state: &State,
    flavor_request: &FlavorRequest<'_>,
    flavor: FlavorId,
) -> Option<(Option<NoFitReason>, Option<PendingReason>)> {
    if !is_nominated(flavor_request, flavor) {
        let resource = flavor_request.first_resource();
        return Some((
            resource.map(|resource| NoFitReason::NotNominated { flavor, resource }),
            None,
        ));
    }
    // An assignment without it is searched for, which says nothing about it.
    if flavor_request.attempt.refused.contains(&flavor) {
        return Some((None, None));
    }
    if let Some(reason) = not_allowed(flavor_request, flavor) {
        return Some((Some(reason), None));
    }
    let reason = unsuitable(state, flavor_request, flavor)?;
    Some((Some(reason), Some(PendingReason::NoMatchingFlavor)))
}

/// Index of the first flavor to try.
fn first_flavor(settings: &EngineSettings, flavor_request: &FlavorRequest<'_>) -> usize {
    if !settings.flavor_fungibility {
        return 0;
    }
    let first = flavor_request.members[0];
    let Some(resource) = flavor_request.first_resource() else {
        return 0;
    };
    let tried = flavor_request.attempt.tried.iter();
    let mut tried =
        tried.filter(|tried| usize::from(tried.pod_set) == first && tried.resource == resource);
    let next = tried.next().map_or(0, |tried| usize::from(tried.index) + 1);
    // The ClusterQueue may have fewer flavors now than when the last attempt stopped. Upstream would look at none.
    if next < flavor_request.group.flavors.len() { next } else { 0 }
}

fn is_nominated(flavor_request: &FlavorRequest<'_>, flavor: FlavorId) -> bool {
    let Some(nominated) = flavor_request.attempt.nominated else {
        return true;
    };
    let of_request = |nominated: &&NominatedFlavor| {
        flavor_request.members.contains(&usize::from(nominated.pod_set))
            && flavor_request.group.resources.contains(&nominated.resource)
    };
    nominated.iter().filter(of_request).any(|nominated| nominated.flavor == flavor)
}

/// Why a variant may not get the flavor, if it may not.
pub(crate) fn not_allowed(
    flavor_request: &FlavorRequest<'_>,
    flavor: FlavorId,
) -> Option<NoFitReason> {
    (!equivalence_class::allows(flavor_request.attempt.class, flavor))
        .then_some(NoFitReason::FlavorNotAllowed(flavor))
}

/// Why the pods may not get the flavor whatever its quota, if they may not.
pub(crate) fn unsuitable(
    state: &State,
    flavor_request: &FlavorRequest<'_>,
    id: FlavorId,
) -> Option<NoFitReason> {
    let AssignmentAttempt { queue, class, .. } = flavor_request.attempt;
    let mut pod_sets = flavor_request.members.iter().map(|&member| &class.pod_sets[member]);
    pod_sets.find_map(|pod_set| unfit(state, *queue, pod_set, flavor_request.group, id))
}

/// Whether a pod set may get a flavor whatever its quota.
pub(crate) fn suits(
    state: &State,
    queue: QueueId,
    pod_set: &PodSetSpec,
    group: &GroupSlots,
    id: FlavorId,
) -> bool {
    unfit(state, queue, pod_set, group, id).is_none()
}

/// Why a pod set may not get the flavor.
fn unfit(
    state: &State,
    queue: QueueId,
    pod_set: &PodSetSpec,
    group: &GroupSlots,
    id: FlavorId,
) -> Option<NoFitReason> {
    let Some(flavor) = state.quota.flavor(id) else {
        return Some(NoFitReason::FlavorNotFound(id));
    };
    let (implied, covered) = (state.queues.at(queue).topology_only, &group.resources);
    match state.topology.topologies().topology_support(pod_set, flavor.topology, implied, covered) {
        TopologySupport::Supported => mismatch(flavor, id, pod_set),
        TopologySupport::NoTopology => Some(NoFitReason::NoTopology(id)),
        TopologySupport::NoLevel => Some(NoFitReason::NoTopologyLevel(id)),
        TopologySupport::TopologyOnly => Some(NoFitReason::OnlyTopologyAware(id)),
    }
}

fn mismatch(flavor: &FlavorSpec, id: FlavorId, pod_set: &PodSetSpec) -> Option<NoFitReason> {
    if let Some((taint, _)) = pod_set.selection.untolerated(&flavor.taints, &flavor.tolerations) {
        return Some(NoFitReason::Taint { flavor: id, taint });
    }
    (!pod_set.selection.matches_flavor(&flavor.labels)).then_some(NoFitReason::Affinity(id))
}

/// One flavor of a scan.
#[derive(Debug, Clone, Copy)]
struct FlavorTrial<'a> {
    /// Its index in the resource group.
    index: usize,
    /// Usage of earlier pod sets of the Workload.
    assumed: &'a SlotUsage,
    preference: FlavorFungibilityPreference,
}

/// Fits every covered resource into one flavor. The result of the flavor is the worst of them.
fn fit_flavor(
    state: &mut State,
    flavor_request: &FlavorRequest<'_>,
    trial: &FlavorTrial<'_>,
    reasons: &mut SmallVec<[NoFitReason; 1]>,
) -> (GranularMode, FlavorAssignments) {
    let &FlavorTrial { index, assumed, preference } = trial;
    let mut worst = GranularMode { preemption_mode: PreemptionMode::Fit, borrow: 0 };
    let mut flavor_assignments = FlavorAssignments::new();
    for &(resource, amount) in flavor_request.requests {
        let Some(slot) = flavor_request.group.slot(index, resource) else {
            continue;
        };
        let flavor = flavor_request.group.flavors[index];
        let (amount, other) =
            beyond_replaced_slice(&state.workloads, flavor_request, resource, flavor, amount);
        if let Some(reason) = other {
            reasons.push(reason);
            worst = worst.or_worse(NO_MATCH, preference);
        }
        let earlier = charged(assumed, slot);
        let (granular_mode, reason) =
            fit_resource_quota(state, flavor_request.attempt, slot, earlier, amount);
        reasons.extend(reason);
        worst = worst.or_worse(granular_mode, preference);
        // The other resources are fitted nevertheless: their reasons are part of the message.
        if granular_mode.is_no_fit() {
            continue;
        }
        let (mode, borrow) = (granular_mode.mode(), granular_mode.borrow);
        let choice = FlavorAssignment { resource, flavor, slot, amount, mode, borrow, tried: None };
        flavor_assignments.push(choice);
    }
    (worst, flavor_assignments)
}

/// The request beyond what the old slice has; or the reason, if the old slice has another flavor.
pub(crate) fn beyond_replaced_slice(
    workloads: &WorkloadLayer,
    flavor_request: &FlavorRequest<'_>,
    resource: ResourceId,
    flavor: FlavorId,
    mut amount: Amount,
) -> (Amount, Option<NoFitReason>) {
    let Some(old) = flavor_request.attempt.replaced_slice else {
        return (amount, None);
    };
    for &member in flavor_request.members {
        let pod_set = &flavor_request.attempt.class.pod_sets[member];
        match slices::held_amount(workloads, old, &pod_set.name, resource) {
            Some((known, held)) if known == flavor => amount -= held,
            other => {
                let original = other.map(|(known, _)| known);
                return (amount, Some(NoFitReason::DiffersFromReplacedSlice { flavor, original }));
            }
        }
    }
    (amount, None)
}

/// The result for a flavor that does not suit the pods.
const NO_MATCH: GranularMode = GranularMode::no_fit(PendingReason::NoMatchingFlavor);

fn is_good_enough(
    settings: &EngineSettings,
    granular_mode: GranularMode,
    flavor_fungibility: FungibilitySpec,
) -> bool {
    if !settings.flavor_fungibility {
        return granular_mode.preemption_mode == PreemptionMode::Fit;
    }
    match granular_mode.preemption_mode {
        // A later flavor may fit or have candidates (§4.4 step 5).
        PreemptionMode::NoFit(_) | PreemptionMode::NoCandidates => false,
        PreemptionMode::Preempt | PreemptionMode::Reclaim
            if flavor_fungibility.when_can_preempt == FlavorFungibilityPolicy::TryNextFlavor =>
        {
            false
        }
        PreemptionMode::Preempt | PreemptionMode::Reclaim | PreemptionMode::Fit => {
            granular_mode.borrow == 0
                || flavor_fungibility.when_can_borrow == FlavorFungibilityPolicy::MayStopSearch
        }
    }
}

/// Whether a flavor is better than the best so far. Without the gate borrowing does not count.
fn is_better(
    settings: &EngineSettings,
    new: GranularMode,
    old: GranularMode,
    flavor_fungibility: FungibilitySpec,
) -> bool {
    if settings.flavor_fungibility {
        new.better_than(old, flavor_fungibility.preference)
    } else {
        new.grants_more_than(old)
    }
}

/// Records where the scan stopped, unless it reached the last flavor.
fn note_progress(
    settings: &EngineSettings,
    flavor_request: &FlavorRequest<'_>,
    last: Option<usize>,
    flavor_assignments: &mut FlavorAssignments,
) {
    if !settings.flavor_fungibility {
        // Without the gate progress is neither kept nor used, but an entry with an assignment counts as unfinished.
        flavor_assignments.iter_mut().for_each(|choice| choice.tried = Some(0));
        return;
    }
    // After the last flavor the next attempt starts at the first one again (§4.4 step 7).
    let left = last.filter(|&last| last + 1 < flavor_request.group.flavors.len());
    let tried = left.and_then(|last| u16::try_from(last).ok());
    for choice in flavor_assignments {
        choice.tried = tried;
    }
}
