//! The result of flavor assignment: per pod set, the flavor of every resource, why it does not fit, and its topology.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::flavors::granular_mode::{GranularMode, PreemptionMode};
use crate::ids::{FlavorId, ResourceId, Slot};
use crate::quota::layer::QuotaLayer;
use crate::reason::{NoFitReason, PendingReason};
use crate::spec::{AssignedResource, PodSetAdmission};
use crate::topology::DomainAssignment;
use crate::workloads::usage::{SlotUsage, charge};

/// How close an assignment is to admission. Later is better. Kueue: `FlavorAssignmentMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum FlavorAssignmentMode {
    /// It does not fit, not even with preemption.
    NoFit,
    /// It needs preemption.
    Preempt,
    /// It fits once the preemption targets of other heads are gone, or pods have left their nodes.
    DeferredFit,
    /// It fits.
    #[default]
    Fit,
}

/// The flavor chosen for one resource of one pod set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlavorAssignment {
    /// Which resource.
    pub resource: ResourceId,
    /// Which flavor.
    pub flavor: FlavorId,
    /// The slot of both.
    pub slot: Slot,
    /// Amount for the whole pod set.
    pub amount: Amount,
    /// How well it fits.
    pub mode: FlavorAssignmentMode,
    /// Height of the lowest subtree that the usage fits in; 0 without borrowing.
    pub borrow: u32,
    /// Index of the flavor that was tried last, if others are left to try.
    pub(crate) tried: Option<u16>,
}

impl FlavorAssignment {
    /// The assignment of a resource that the Workload holds already.
    fn held(assigned: AssignedResource, slot: Slot) -> Self {
        let AssignedResource { resource, flavor, amount } = assigned;
        let mode = FlavorAssignmentMode::Fit;
        Self { resource, flavor, slot, amount, mode, borrow: 0, tried: None }
    }

    /// What an admission records of it.
    pub(crate) fn assigned(&self) -> AssignedResource {
        let Self { resource, flavor, amount, .. } = *self;
        AssignedResource { resource, flavor, amount }
    }
}

/// A flavor that a scan looked at and that does not simply fit. Kueue: `FlavorAssignmentAttempt`.
#[derive(Debug, Clone)]
pub(crate) struct FlavorTrialResult {
    /// Which flavor.
    pub(crate) flavor: FlavorId,
    /// How well the pod set fits into it.
    pub(crate) granular_mode: GranularMode,
    /// Why it does not fit.
    pub(crate) reasons: SmallVec<[NoFitReason; 1]>,
}

impl FlavorTrialResult {
    /// The result of a flavor, unless the pod set fits without borrowing, as most do.
    pub(crate) fn notable(
        flavor: FlavorId,
        granular_mode: GranularMode,
        reasons: &[NoFitReason],
    ) -> Option<Self> {
        let fits = granular_mode.preemption_mode == PreemptionMode::Fit;
        let plain = fits && granular_mode.borrow == 0;
        (!plain).then(|| Self { flavor, granular_mode, reasons: reasons.into() })
    }
}

/// The assignment of one pod set.
#[derive(Debug, Clone, Default)]
pub struct PodSetFlavorAssignment {
    /// Index of the pod set in the Workload.
    pub(crate) pod_set: usize,
    /// Number of pods.
    pub count: i64,
    /// One entry per resource that got a flavor.
    pub flavor_assignments: SmallVec<[FlavorAssignment; 4]>,
    /// Why it does not fit.
    pub reasons: SmallVec<[NoFitReason; 1]>,
    /// At least one resource has no flavor.
    pub no_fit: bool,
    /// Topology assignment, if one is requested and found.
    pub domains: Vec<DomainAssignment>,
    /// The topology assignment is delayed: an admission check provides the nodes, or a worker cluster makes it.
    pub delayed_topology: bool,
    /// Flavors that were looked at and do not simply fit, in the order of the scans.
    pub(crate) trials: SmallVec<[FlavorTrialResult; 1]>,
}

impl PodSetFlavorAssignment {
    /// The assignment of the resources that a pod set holds already, without its domains.
    pub(crate) fn held(quota: &mut QuotaLayer, pod_set: usize, held: &PodSetAdmission) -> Self {
        let flavor_assignments = held.resources.iter().map(|&assigned| {
            FlavorAssignment::held(assigned, quota.slot(assigned.flavor, assigned.resource))
        });
        let flavor_assignments = flavor_assignments.collect();
        Self { pod_set, count: held.count, flavor_assignments, ..Self::default() }
    }

    /// The worst mode of its flavors.
    pub fn mode(&self) -> FlavorAssignmentMode {
        if self.no_fit {
            return FlavorAssignmentMode::NoFit;
        }
        if self.reasons.is_empty() {
            // If preemption is preferred over borrowing, a flavor may be graded by its borrowing and count as fitting
            // although another resource needs preemption. Upstream goes by the absence of reasons.
            return FlavorAssignmentMode::Fit;
        }
        self.flavor_assignments.iter().map(|choice| choice.mode).min().unwrap_or_default()
    }
}

/// The assignment of a Workload.
#[derive(Debug, Clone, Default)]
pub struct Assignment {
    /// Pod sets in their order. If one does not fit, in the order of assignment: grouped ones follow each other, and those
    /// after the group that does not fit are missing.
    pub pod_sets: Vec<PodSetFlavorAssignment>,
    /// Usage by slot; of a replacement slice, the usage beyond the old slice.
    pub(crate) usage: SlotUsage,
    /// Height of the lowest subtree that the usage fits in; 0 without borrowing.
    pub borrow: u32,
    /// Why it does not fit, if it does not.
    pub pending_reason: Option<PendingReason>,
    /// It fits once the preemption targets of other heads are gone, or pods have left their nodes.
    pub(crate) deferred: bool,
    /// It fits once pods have left their nodes.
    pub(crate) awaits_leaving_pods: bool,
}

impl Assignment {
    /// The worst mode of its pod sets.
    pub fn mode(&self) -> FlavorAssignmentMode {
        let worst =
            self.pod_sets.iter().map(PodSetFlavorAssignment::mode).min().unwrap_or_default();
        if worst == FlavorAssignmentMode::Fit && self.deferred {
            FlavorAssignmentMode::DeferredFit
        } else {
            worst
        }
    }

    /// Whether flavors are left to try.
    pub(crate) fn has_untried(&self) -> bool {
        self.pod_sets
            .iter()
            .any(|one| one.flavor_assignments.iter().any(|choice| choice.tried.is_some()))
    }

    /// The slots that need preemption.
    pub(crate) fn contested(&self) -> SmallVec<[Slot; 4]> {
        let mut slots = SmallVec::new();
        for choice in self.pod_sets.iter().flat_map(|one| &one.flavor_assignments) {
            // Several pod sets may need preemption of one slot.
            if choice.mode == FlavorAssignmentMode::Preempt && !slots.contains(&choice.slot) {
                slots.push(choice.slot);
            }
        }
        slots
    }

    /// Usage by slot, including what the old slice has.
    pub(crate) fn whole_usage(&self) -> SlotUsage {
        let mut usage = SlotUsage::new();
        for choice in self.pod_sets.iter().flat_map(|one| &one.flavor_assignments) {
            charge(&mut usage, choice.slot, choice.amount);
        }
        usage
    }

    pub(crate) fn clear(&mut self) {
        self.pod_sets.clear();
        self.usage.clear();
        (self.borrow, self.pending_reason, self.deferred) = (0, None, false);
        self.awaits_leaving_pods = false;
    }

    /// It fits once pods have left their nodes, and nothing else is in its way.
    pub(crate) fn await_leaving_pods(&mut self) {
        for one in &mut self.pod_sets {
            one.reasons.clear();
        }
        (self.pending_reason, self.deferred, self.awaits_leaving_pods) = (None, true, true);
    }
}
