//! What decides about dispatch beside the copies, and what inputs of workers change beside them.

use ::jobs::{JobObject, Kind, admitted_infos::FlavorsByName};
use dispatch::Fleet;
use runtime::watch::Change;

use crate::control::{
    fleet::FleetRegistry, jobs::Jobs, scheduling::Scheduler, workloads::Workloads,
};

/// What decides about dispatch beside the copies.
pub(crate) struct DispatchInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
    pub(crate) registry: &'a FleetRegistry,
    pub(crate) fleet: &'a mut Fleet,
    pub(crate) scheduler: &'a Scheduler,
    pub(crate) flavors: &'a FlavorsByName,
}

/// What an input of a worker is recorded with, and in.
pub(crate) struct WorkerInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
    pub(crate) registry: &'a FleetRegistry,
    pub(crate) fleet: &'a mut Fleet,
    pub(crate) scheduler: &'a mut Scheduler,
}

/// A change of the jobs of a kind on a worker.
pub(crate) struct JobsChange<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) change: Change<JobObject>,
}

/// The objects of the hub that copies are compared with.
#[derive(Clone, Copy)]
pub(crate) struct HubObjects<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) registry: &'a FleetRegistry,
    /// Everything on the hub was listed.
    pub(crate) complete: bool,
}
