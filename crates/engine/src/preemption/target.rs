//! Preemption targets: Workloads to evict, and why.

use smallvec::SmallVec;

use crate::ids::WorkloadId;
use crate::reason::PreemptionReason;

/// A preemption target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreemptionTarget {
    /// The Workload.
    pub workload: WorkloadId,
    /// Why it may be preempted.
    pub reason: PreemptionReason,
}

/// The Workloads of the targets.
pub(crate) fn ids(targets: &[PreemptionTarget]) -> WorkloadIds {
    targets.iter().map(|target| target.workload).collect()
}

/// A list of Workloads, inline if short.
pub(crate) type WorkloadIds = SmallVec<[WorkloadId; 16]>;
