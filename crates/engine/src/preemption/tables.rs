//! What the choice of preemption candidates reads.

use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::workloads::layer::WorkloadLayer;

/// The layers that policies and order of candidates depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CandidateTables<'a> {
    pub(crate) quota: &'a QuotaLayer,
    pub(crate) workloads: &'a WorkloadLayer,
    pub(crate) queues: &'a QueueLayer,
}
