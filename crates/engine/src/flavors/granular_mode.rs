//! The judgement on one (flavor, resource): does the request fit, could it, and at whose cost.
//!
//! Source: docs/reference/kueue.md §4.4 steps 4 and 6.

use crate::flavors::assignment::FlavorAssignmentMode;
use crate::reason::PendingReason;
use crate::spec::FlavorFungibilityPreference;

/// What the quota grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreemptionMode {
    /// Nothing, and preemption would not help.
    NoFit(PendingReason),
    /// Preemption might help, but there is nobody to preempt now.
    NoCandidates,
    /// Victims in the own queue.
    Preempt,
    /// Victims in other queues only.
    Reclaim,
    /// All of it.
    Fit,
}

/// A grant and how far up the tree it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GranularMode {
    pub(crate) grant: PreemptionMode,
    pub(crate) borrow: u32,
}

impl GranularMode {
    pub(crate) fn is_no_fit(self) -> bool {
        matches!(self.grant, PreemptionMode::NoFit(_))
    }

    pub(crate) fn mode(self) -> FlavorAssignmentMode {
        match self.grant {
            PreemptionMode::NoFit(_) => FlavorAssignmentMode::NoFit,
            PreemptionMode::NoCandidates | PreemptionMode::Preempt | PreemptionMode::Reclaim => {
                FlavorAssignmentMode::Preempt
            }
            PreemptionMode::Fit => FlavorAssignmentMode::Fit,
        }
    }

    /// The worse of two grades; of two that do not fit, the one with the more severe obstacle.
    pub(crate) fn or_worse(self, other: Self, preference: FlavorFungibilityPreference) -> Self {
        match (self.grant, other.grant) {
            (PreemptionMode::NoFit(left), PreemptionMode::NoFit(right)) if right > left => other,
            _ if self.better_than(other, preference) => other,
            _ => self,
        }
    }

    fn rank(self) -> u32 {
        match self.grant {
            PreemptionMode::NoFit(_) => 0,
            PreemptionMode::NoCandidates => 1,
            PreemptionMode::Preempt => 2,
            PreemptionMode::Reclaim => 3,
            PreemptionMode::Fit => 4,
        }
    }

    /// Whether this grade is strictly better, however far it reaches.
    pub(crate) fn grants_more_than(self, other: Self) -> bool {
        self.rank() > other.rank()
    }

    /// Whether this grade is strictly better.
    pub(crate) fn better_than(self, other: Self, preference: FlavorFungibilityPreference) -> bool {
        let (own, others) = (self.rank(), other.rank());
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
