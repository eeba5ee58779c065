//! What decides about dispatch beside the copies.

use ::jobs::admitted_infos::FlavorsByName;
use dispatch::Fleet;

use crate::control::{
    fleet::FleetRegistry, jobs::Jobs, scheduling::Scheduler, workloads::Workloads,
};

/// See the module.
pub(crate) struct DispatchInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
    pub(crate) registry: &'a FleetRegistry,
    pub(crate) fleet: &'a mut Fleet,
    pub(crate) scheduler: &'a Scheduler,
    pub(crate) flavors: &'a FlavorsByName,
}
