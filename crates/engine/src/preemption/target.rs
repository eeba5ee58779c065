//! Preemption targets: Workloads to evict, and why.

use smallvec::SmallVec;

use crate::ids::WorkloadId;
use crate::reason::PreemptionReason;

/// A victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreemptionTarget {
    /// Who.
    pub workload: WorkloadId,
    /// Why.
    pub reason: PreemptionReason,
}

/// The Workloads that are to go.
pub(crate) fn ids(targets: &[PreemptionTarget]) -> WorkloadIds {
    targets.iter().map(|target| target.workload).collect()
}

/// Shorthand for lists of Workloads.
pub(crate) type WorkloadIds = SmallVec<[WorkloadId; 16]>;
