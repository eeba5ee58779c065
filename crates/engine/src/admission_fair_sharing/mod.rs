//! Admission fair sharing: within a ClusterQueue, Workloads of the LocalQueue with the least usage come first.
//!
//! [`decay`] is the arithmetic, [`ledger`] keeps what every LocalQueue consumed, [`consumption`] updates the ledger and the
//! pending queues that order by it. Source: docs/reference/kueue.md §3.8.
//!
//! No clock and no floating point: times come with events, amounts are whole numbers in 2^-32 of a unit.

pub(crate) mod consumption;
pub(crate) mod decay;
pub(crate) mod ledger;

use crate::ids::ResourceId;
use crate::spec::FairSharingWeight;

/// Configuration of admission fair sharing. Spans are in nanoseconds, the unit of [`crate::Time`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionFairSharingSettings {
    /// Past consumption halves in this span; with 0 every sample clears it.
    pub usage_half_life: i64,
    /// Time between two samples of a LocalQueue.
    pub interval: i64,
    /// Weights of one base unit of a resource (of cpu: of a thousandth of a core); 1 for those not listed.
    pub weights: Vec<(ResourceId, FairSharingWeight)>,
}

/// Weighted consumption of a LocalQueue, in 2^-32 of a unit. Smaller comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FairSharingUsage(pub(crate) i128);

impl FairSharingUsage {
    /// The usage of a LocalQueue with weight zero.
    pub const INFINITE: Self = Self(i128::MAX);

    /// The usage in billionths of a unit, rounded down; saturates.
    pub fn nanos(self) -> i128 {
        ledger::to_nanos(self.0)
    }
}
