//! Admission fair sharing: within a ClusterQueue that asks for it, Workloads of the LocalQueue that used least come first.
//!
//! [`decay`] is the arithmetic, [`ledger`] what every LocalQueue consumed and how it is told. Shares reach the lines of
//! the queues, which order by them. Source: docs/reference/kueue.md §3.8.
//!
//! There is no clock and no floating point here: times come with events, and equal events give equal shares on every
//! machine. What was consumed is known to 2^-20 of a unit.

mod decay;
mod ledger;

pub(crate) use ledger::{
    ConsumptionLedger, admitted, configure, consumed, forget, queue_changed, sample, sent, unsent,
    update_usage,
};

use crate::ids::ResourceId;
use crate::spec::FairSharingWeight;

/// How usage is remembered, and what it counts. Spans are in the unit of [`crate::Time`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionFairSharing {
    /// After this span, half of what was consumed is forgotten; 0 forgets all of it at every sample.
    pub usage_half_life: i64,
    /// How often usage is sampled.
    pub interval: i64,
    /// Resources that do not count once.
    pub weights: Vec<(ResourceId, FairSharingWeight)>,
}

/// How much a LocalQueue has consumed for its weight. Smaller comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FairSharingUsage(pub(crate) i128);

impl FairSharingUsage {
    /// Of a LocalQueue without weight.
    pub const INFINITE: Self = Self(i128::MAX);

    /// In thousandths of a unit, for people; saturates.
    pub fn thousandths(self) -> i64 {
        i64::try_from(self.0.saturating_mul(1000) >> decay::BITS).unwrap_or(i64::MAX)
    }
}
