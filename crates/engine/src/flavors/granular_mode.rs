//! The result of fitting a request into one (flavor, resource): preemption mode and borrowing level. Kueue:
//! `granularMode`.
//!
//! Source: docs/reference/kueue.md §4.4 steps 4 and 6.

use crate::flavors::assignment::FlavorAssignmentMode;
use crate::reason::PendingReason;
use crate::spec::FlavorFungibilityPreference;

/// Kueue: `preemptionMode`. Later is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreemptionMode {
    /// It does not fit, and preemption does not help.
    NoFit(PendingReason),
    /// Preemption is allowed, but there are no candidates now.
    NoCandidates,
    /// Preemption with targets in the own ClusterQueue.
    Preempt,
    /// Preemption with targets in other ClusterQueues only.
    Reclaim,
    /// It fits.
    Fit,
}

/// A preemption mode and the height of the lowest subtree that the request fits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GranularMode {
    pub(crate) preemption_mode: PreemptionMode,
    pub(crate) borrow: u32,
}

impl GranularMode {
    pub(crate) const fn no_fit(reason: PendingReason) -> Self {
        Self { preemption_mode: PreemptionMode::NoFit(reason), borrow: 0 }
    }

    pub(crate) fn is_no_fit(self) -> bool {
        matches!(self.preemption_mode, PreemptionMode::NoFit(_))
    }

    pub(crate) fn mode(self) -> FlavorAssignmentMode {
        match self.preemption_mode {
            PreemptionMode::NoFit(_) => FlavorAssignmentMode::NoFit,
            PreemptionMode::NoCandidates | PreemptionMode::Preempt | PreemptionMode::Reclaim => {
                FlavorAssignmentMode::Preempt
            }
            PreemptionMode::Fit => FlavorAssignmentMode::Fit,
        }
    }

    /// The worse of two; of two that do not fit, the one with the more severe reason.
    pub(crate) fn or_worse(self, other: Self, preference: FlavorFungibilityPreference) -> Self {
        match (self.preemption_mode, other.preemption_mode) {
            // The most severe reason over the resources of a flavor explains it (§4.4).
            (PreemptionMode::NoFit(left), PreemptionMode::NoFit(right)) if right > left => other,
            _ if self.better_than(other, preference) => other,
            _ => self,
        }
    }

    fn rank(self) -> u32 {
        match self.preemption_mode {
            PreemptionMode::NoFit(_) => 0,
            PreemptionMode::NoCandidates => 1,
            PreemptionMode::Preempt => 2,
            PreemptionMode::Reclaim => 3,
            PreemptionMode::Fit => 4,
        }
    }

    /// Whether the preemption mode is strictly better, whatever the borrowing.
    pub(crate) fn grants_more_than(self, other: Self) -> bool {
        self.rank() > other.rank()
    }

    /// Whether this one is strictly better.
    pub(crate) fn better_than(self, other: Self, preference: FlavorFungibilityPreference) -> bool {
        let (own, others) = (self.rank(), other.rank());
        // NoFit and NoCandidates lose against viable modes whatever the preference (§4.4 step 6).
        if own < 2 || others < 2 {
            return (own, other.borrow) > (others, self.borrow) && own != 0;
        }
        match preference {
            FlavorFungibilityPreference::BorrowingOverPreemption => {
                (own, other.borrow) > (others, self.borrow)
            }
            FlavorFungibilityPreference::PreemptionOverBorrowing => {
                (other.borrow, own) > (self.borrow, others)
            }
        }
    }
}
