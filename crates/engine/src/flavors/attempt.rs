//! One attempt to assign flavors: which Workload, for which ClusterQueue, with which counts and restrictions.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::equivalence_class::EquivalenceClass;
use crate::ids::{FlavorId, QueueId, ResourceId, WorkloadId};

/// The input of one flavor assignment.
#[derive(Debug, Clone)]
pub(crate) struct AssignmentAttempt<'a> {
    pub(crate) workload: WorkloadId,
    pub(crate) queue: QueueId,
    pub(crate) class: &'a Arc<EquivalenceClass>,
    /// Counts per pod set that differ from the class, for partial admission.
    pub(crate) counts: Option<&'a [i64]>,
    /// Where earlier scans stopped: (pod set, resource, flavor index).
    pub(crate) tried: &'a [(u16, ResourceId, u16)],
    /// The old slice whose quota the Workload takes over.
    pub(crate) old: Option<WorkloadId>,
    /// Flavors that must not change, when an entry is evaluated again within a cycle.
    pub(crate) pins: Option<&'a [(u16, ResourceId, FlavorId)]>,
}

impl AssignmentAttempt<'_> {
    pub(crate) fn count(&self, pod_set: usize) -> i64 {
        self.counts.map_or(self.class.pod_sets[pod_set].count, |counts| counts[pod_set])
    }
}

/// Requests of one or several pod sets, in the order in which they are assigned.
pub(crate) type PodSetRequests = SmallVec<[(ResourceId, Amount); 4]>;
