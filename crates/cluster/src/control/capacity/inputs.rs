//! What capacity and report are computed from, beside nodes and pods.

use crds::v1alpha1::JobKind as ReportedKind;
use dispatch::Fleet;

use crate::control::{jobs::Jobs, scheduling::Scheduler, workloads::Workloads};

/// What the capacity is computed from, beside nodes and pods.
pub(crate) struct CapacityInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
    pub(crate) scheduler: &'a mut Scheduler,
    pub(crate) fleet: &'a mut Fleet,
}

/// What a report says beside nodes.
pub(crate) struct ReportInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) scheduler: &'a mut Scheduler,
    pub(crate) fleet: &'a Fleet,
    /// Kinds of jobs that run here.
    pub(crate) kinds: Vec<ReportedKind>,
    /// The manager's origin; Workloads of other origins are counted separately.
    pub(crate) origin: &'a str,
}
