//! The result of flavor assignment: per pod set, the flavor of every resource, why it does not fit, and its topology.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::ids::{FlavorId, ResourceId, Slot};
use crate::reason::{NoFitReason, PendingReason};
use crate::topology::DomainAssignment;
use crate::workloads::usage::{Usage, charge};

/// How far an assignment is from being admitted. Later is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum FlavorAssignmentMode {
    /// Not even preemption helps.
    NoFit,
    /// Somebody would have to go.
    Preempt,
    /// It fits once the victims of others are gone.
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
    /// Both as a slot.
    pub slot: Slot,
    /// How much the whole pod set takes.
    pub amount: Amount,
    /// How well it fits.
    pub mode: FlavorAssignmentMode,
    /// How far up the tree it reaches.
    pub borrow: u32,
    /// The flavor that was tried last, if others are left to try.
    pub(crate) tried: Option<u16>,
}

/// The assignment of one pod set.
#[derive(Debug, Clone, Default)]
pub struct PodSetAssignment {
    /// Pods it was assigned for.
    pub count: i64,
    /// One entry per resource that got a flavor.
    pub flavor_assignments: SmallVec<[FlavorAssignment; 4]>,
    /// What stands in the way.
    pub reasons: SmallVec<[NoFitReason; 1]>,
    /// At least one resource got no flavor.
    pub no_fit: bool,
    /// Where its pods go, if a topology is asked for and found.
    pub domains: Vec<DomainAssignment>,
    /// No places are looked for now: a check provides the machines first, or another cluster does it.
    pub delayed_topology: bool,
}

impl PodSetAssignment {
    /// The worst of its choices.
    pub fn mode(&self) -> FlavorAssignmentMode {
        if self.no_fit {
            return FlavorAssignmentMode::NoFit;
        }
        if self.reasons.is_empty() {
            // Where preemption is preferred over borrowing, a flavor can be worst for what it borrows, and then counts
            // as fitting although another resource needs preemption. Upstream goes by the absence of reasons.
            return FlavorAssignmentMode::Fit;
        }
        self.flavor_assignments.iter().map(|choice| choice.mode).min().unwrap_or_default()
    }
}

/// The assignment of a Workload.
#[derive(Debug, Clone, Default)]
pub struct Assignment {
    /// Pod sets, in order; those after the first that does not fit are missing.
    pub pod_sets: Vec<PodSetAssignment>,
    /// What it takes, by slot; of a replacement, what it takes beside the old slice.
    pub(crate) usage: Usage,
    /// How far up the tree it reaches.
    pub borrow: u32,
    /// Why it does not fit, if it does not.
    pub pending_reason: Option<PendingReason>,
    /// It fits once the victims of others are gone.
    pub(crate) deferred: bool,
}

impl Assignment {
    /// The worst of its pod sets.
    pub fn mode(&self) -> FlavorAssignmentMode {
        let worst = self.pod_sets.iter().map(PodSetAssignment::mode).min().unwrap_or_default();
        if worst == FlavorAssignmentMode::Fit && self.deferred {
            FlavorAssignmentMode::DeferredFit
        } else {
            worst
        }
    }

    /// Flavors are left that were not tried.
    pub(crate) fn has_untried(&self) -> bool {
        self.pod_sets
            .iter()
            .any(|one| one.flavor_assignments.iter().any(|choice| choice.tried.is_some()))
    }

    /// The slots for which somebody would have to go.
    pub(crate) fn contested(&self) -> SmallVec<[Slot; 4]> {
        let mut slots = SmallVec::new();
        for choice in self.pod_sets.iter().flat_map(|one| &one.flavor_assignments) {
            if choice.mode == FlavorAssignmentMode::Preempt && !slots.contains(&choice.slot) {
                slots.push(choice.slot);
            }
        }
        slots
    }

    /// What all its choices take.
    pub(crate) fn whole_usage(&self) -> Usage {
        let mut usage = Usage::new();
        for choice in self.pod_sets.iter().flat_map(|one| &one.flavor_assignments) {
            charge(&mut usage, choice.slot, choice.amount);
        }
        usage
    }

    pub(crate) fn clear(&mut self) {
        self.pod_sets.clear();
        self.usage.clear();
        (self.borrow, self.pending_reason, self.deferred) = (0, None, false);
    }
}
