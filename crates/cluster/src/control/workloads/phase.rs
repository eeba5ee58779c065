//! The phase of a Workload, parsed from its conditions once, when it is observed.
//!
//! ```text
//! Pending --reserve--> QuotaReserved --all checks Ready--> Admitted --> Finished
//!    ^                      |                                 |
//!    |                      +----------- evict ---------------+
//!    |                                     v
//!    +--requeue-- Evicted <--pods gone-- Evicting
//! ```
//! Source: docs/reference/kueue.md §2.1, §2.2.

use crds::{
    meta::{Condition, is_true},
    names::conditions::{ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED},
};

/// The phase that the conditions of a Workload stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkloadPhase {
    /// Without quota.
    Pending,
    /// With quota, and checks that are not Ready.
    QuotaReserved,
    /// With quota and all checks Ready.
    Admitted,
    /// Evicted, and its quota is not released yet.
    Evicting,
    /// Evicted, without quota.
    Evicted,
    /// Finished. No other condition counts any more.
    Finished,
}

impl WorkloadPhase {
    /// The phase that conditions stand for.
    pub(crate) fn of(conditions: &[Condition]) -> Self {
        let is = |condition| is_true(conditions, condition);
        match (is(QUOTA_RESERVED), is(EVICTED)) {
            _ if is(FINISHED) => Self::Finished,
            (true, true) => Self::Evicting,
            (true, false) if is(ADMITTED) => Self::Admitted,
            (true, false) => Self::QuotaReserved,
            (false, true) => Self::Evicted,
            (false, false) => Self::Pending,
        }
    }

    /// Whether it holds quota, as far as the API says.
    pub(crate) fn holds_quota(self) -> bool {
        matches!(self, Self::QuotaReserved | Self::Admitted | Self::Evicting)
    }

    /// Whether it holds quota that it is not about to lose.
    pub(crate) fn keeps_quota(self) -> bool {
        matches!(self, Self::QuotaReserved | Self::Admitted)
    }

    /// Whether it is evicted, with or without quota.
    pub(crate) fn is_evicted(self) -> bool {
        matches!(self, Self::Evicting | Self::Evicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(conditions: &[&str]) -> WorkloadPhase {
        let one = |name: &&str| Condition {
            r#type: (*name).to_owned(),
            status: "True".to_owned(),
            ..Condition::default()
        };
        WorkloadPhase::of(&conditions.iter().map(one).collect::<Vec<_>>())
    }

    #[test]
    fn conditions_stand_for_one_phase() {
        assert_eq!(phase(&[]), WorkloadPhase::Pending);
        assert_eq!(phase(&[ADMITTED]), WorkloadPhase::Pending, "admission without quota is none");
        assert_eq!(phase(&[QUOTA_RESERVED]), WorkloadPhase::QuotaReserved);
        assert_eq!(phase(&[QUOTA_RESERVED, ADMITTED]), WorkloadPhase::Admitted);
        assert_eq!(phase(&[QUOTA_RESERVED, ADMITTED, EVICTED]), WorkloadPhase::Evicting);
        assert_eq!(phase(&[EVICTED]), WorkloadPhase::Evicted);
        assert_eq!(phase(&[QUOTA_RESERVED, EVICTED, FINISHED]), WorkloadPhase::Finished);
    }
}
