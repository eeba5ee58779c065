//! The record of a Workload: small, with what it requests kept once per equivalence class.

use smallvec::SmallVec;

use crate::ids::{
    CheckId, EquivalenceClassId, LocalQueueId, NamespaceId, QueueId, RequeueKey, ResourceId,
};
use crate::spec::{CheckState, QueueEligibility};
use crate::time::Time;
use crate::workloads::admission::Admission;

/// Where a Workload stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// Nowhere: being evaluated, held out, or without a queue.
    Out,
    /// In a bucket of its queue's line.
    Pending {
        /// Which.
        bucket: u32,
    },
    /// Set aside in its queue's line.
    Inadmissible {
        /// Position among those aside.
        place: u32,
    },
    /// Among those that hold quota in its queue.
    Reserving {
        /// Position among them.
        place: u32,
    },
}

/// How far the scan of flavors got, for the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScanMemory {
    /// The cycle that wrote it.
    pub(crate) cycle: u64,
    /// The queue's generation of allocatable resources then.
    pub(crate) generation: u64,
    /// Per (pod set, resource): the flavor that was tried last. Those that reached the end are absent.
    pub(crate) tried: SmallVec<[(u16, ResourceId, u16); 4]>,
}

/// One Workload.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) uid: Box<str>,
    pub(crate) namespace: NamespaceId,
    pub(crate) local_queue: Option<LocalQueueId>,
    pub(crate) queue: Option<QueueId>,
    pub(crate) class: EquivalenceClassId,
    pub(crate) priority: i64,
    pub(crate) has_priority_class: bool,
    pub(crate) queued_at: Time,
    pub(crate) eligibility: QueueEligibility,
    pub(crate) place: QueuePosition,
    pub(crate) ticket: u32,
    /// Simulated away in a what-if: not a candidate.
    pub(crate) hidden: bool,
    /// A preemption gate of it is closed.
    pub(crate) preemption_gated: bool,
    /// It waits for the placer to have room.
    pub(crate) wake: Option<RequeueKey>,
    pub(crate) invalid: Option<Box<str>>,
    pub(crate) checks: Box<[(CheckId, CheckState)]>,
    pub(crate) scan: Option<Box<ScanMemory>>,
    pub(crate) admission: Option<Box<Admission>>,
}
