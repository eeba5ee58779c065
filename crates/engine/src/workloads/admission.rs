//! The quota that a Workload reserved.

use crate::ids::QueueId;
use crate::spec::PodSetAdmission;
use crate::time::Time;
use crate::workloads::usage::SlotUsage;

/// The quota reservation of a Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdmissionRecord {
    pub(crate) queue: QueueId,
    pub(crate) reserved_at: Time,
    pub(crate) evicted: bool,
    /// A replacement slice took over its topology domains.
    pub(crate) taken_over: bool,
    pub(crate) usage: SlotUsage,
    pub(crate) pod_sets: Vec<PodSetAdmission>,
}
