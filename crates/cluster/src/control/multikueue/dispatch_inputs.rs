//! What decides about dispatch beside the copies.

use ::jobs::pod_sets_info::FlavorsByName;

use crate::control::{
    fleet::FleetRegistry, jobs::Jobs, scheduling::Scheduler, workloads::Workloads,
};

/// See the module.
pub(crate) struct DispatchInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
    pub(crate) registry: &'a mut FleetRegistry,
    pub(crate) scheduler: &'a Scheduler,
    pub(crate) flavors: &'a FlavorsByName,
}
