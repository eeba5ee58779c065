//! The record of a Workload: small, with what it requests kept once per equivalence class.

use smallvec::SmallVec;

use crate::admission_fair_sharing::ledger::Sums;
use crate::ids::{
    BucketId, CheckId, EquivalenceClassId, LocalQueueId, NamespaceId, QueueId, RequeueKey,
    ResourceId,
};
use crate::spec::{CheckState, QueueEligibility};
use crate::time::Time;
use crate::workloads::admission::AdmissionRecord;

/// The position of a Workload in its ClusterQueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// None: it is being evaluated, excluded, or has no ClusterQueue.
    NotQueued,
    /// In a class bucket of the pending queue.
    Pending {
        /// The bucket's index.
        bucket: BucketId,
    },
    /// Among the single inadmissible Workloads.
    Inadmissible {
        /// Index in that list.
        index: u32,
    },
    /// Among the reserving Workloads.
    Reserving {
        /// Index in that list.
        index: u32,
    },
}

/// The flavor that a scan tried last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TriedFlavor {
    /// Index of the pod set.
    pub(crate) pod_set: u16,
    pub(crate) resource: ResourceId,
    /// Index of the flavor in its resource group.
    pub(crate) index: u16,
}

/// Where the scans of a Workload stopped.
pub(crate) type TriedFlavors = SmallVec<[TriedFlavor; 4]>;

/// Whether a changed Workload continues its flavor scan where the last one stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanProgress {
    Kept,
    Dropped,
}

/// Progress of the last flavor scan, from which the next attempt continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastAssignment {
    /// The cycle that wrote it.
    pub(crate) cycle: u64,
    /// The ClusterQueue's generation at that time.
    pub(crate) generation: u64,
    /// Completed scans are absent.
    pub(crate) tried: TriedFlavors,
}

/// One Workload.
#[derive(Debug, Clone)]
pub(crate) struct WorkloadRecord {
    pub(crate) uid: Box<str>,
    pub(crate) namespace: NamespaceId,
    pub(crate) local_queue: Option<LocalQueueId>,
    pub(crate) queue: Option<QueueId>,
    pub(crate) class: EquivalenceClassId,
    pub(crate) priority: i64,
    pub(crate) has_priority_class: bool,
    pub(crate) queued_at: Time,
    pub(crate) eligibility: QueueEligibility,
    pub(crate) position: QueuePosition,
    pub(crate) ticket: u32,
    /// Removed in a simulation: not a preemption candidate.
    pub(crate) removed: bool,
    /// One of its preemption gates is closed.
    pub(crate) preemption_gated: bool,
    /// The entry penalty that its LocalQueue was charged. One that is no greater is not charged again (admission fair sharing).
    pub(crate) settled_penalty: Option<Box<Sums>>,
    /// It waits for cluster capacity under this key.
    pub(crate) awaited_capacity: Option<RequeueKey>,
    /// It waits for quota, too: it would have to preempt.
    pub(crate) awaits_quota: bool,
    pub(crate) invalid: Option<Box<str>>,
    pub(crate) checks: Box<[(CheckId, CheckState)]>,
    pub(crate) last_assignment: Option<Box<LastAssignment>>,
    pub(crate) admission: Option<Box<AdmissionRecord>>,
}

impl WorkloadRecord {
    /// Takes the settled entry penalty for the record `new` of a later observation. It ends with another LocalQueue, with another
    /// object of the name, and when the Workload leaves its queue.
    pub(super) fn take_settled_penalty(&mut self, new: &Self) -> Option<Box<Sums>> {
        let stays = self.local_queue == new.local_queue
            && self.uid == new.uid
            && new.eligibility != QueueEligibility::Excluded;
        self.settled_penalty.take().filter(|_| stays)
    }
}
