//! One attempt to assign flavors: which Workload, for which ClusterQueue, with which counts and restrictions.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::workloads::equivalence_class::EquivalenceClass;
use crate::workloads::record::TriedFlavor;

/// A flavor that nomination assigned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NominatedFlavor {
    /// Index of the pod set.
    pub(crate) pod_set: u16,
    pub(crate) resource: ResourceId,
    pub(crate) flavor: FlavorId,
}

/// The input of one flavor assignment.
#[derive(Debug, Clone)]
pub(crate) struct AssignmentAttempt<'a> {
    pub(crate) workload: WorkloadId,
    pub(crate) queue: QueueId,
    pub(crate) class: &'a Arc<EquivalenceClass>,
    /// Counts per pod set that differ from the class, for partial admission.
    pub(crate) counts: Option<&'a [i64]>,
    /// Where earlier scans stopped.
    pub(crate) tried: &'a [TriedFlavor],
    /// The old slice whose quota the Workload takes over.
    pub(crate) replaced_slice: Option<WorkloadId>,
    /// Flavors that must not change, when an entry is evaluated again within a cycle.
    pub(crate) nominated: Option<&'a [NominatedFlavor]>,
    /// Flavors that are left out.
    pub(crate) refused: &'a [FlavorId],
    /// The only preemption candidates, sorted.
    pub(crate) candidates: Option<&'a [WorkloadId]>,
}

impl<'a> AssignmentAttempt<'a> {
    /// An attempt without restrictions.
    pub(crate) fn new(
        workload: WorkloadId,
        queue: QueueId,
        class: &'a Arc<EquivalenceClass>,
    ) -> Self {
        Self {
            workload,
            queue,
            class,
            counts: None,
            tried: &[],
            replaced_slice: None,
            nominated: None,
            refused: &[],
            candidates: None,
        }
    }

    /// Whether a Workload may be a preemption candidate.
    pub(crate) fn considers(&self, candidate: WorkloadId) -> bool {
        self.candidates.is_none_or(|all| all.binary_search(&candidate).is_ok())
    }

    pub(crate) fn count(&self, pod_set: usize) -> i64 {
        self.counts.map_or(self.class.pod_sets[pod_set].count, |counts| counts[pod_set])
    }
}

/// Requests of one or several pod sets, in the order in which they are assigned.
pub(crate) type PodSetRequests = SmallVec<[(ResourceId, Amount); 4]>;
