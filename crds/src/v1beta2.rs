//! `kueue.x-k8s.io/v1beta2`: the stored version, used by all other crates.

mod admission_check;
mod admission_check_state;
mod cluster_queue;
mod cluster_queue_status;
mod cohort;
mod fair_sharing;
mod local_queue;
mod multi_kueue;
mod provisioning_request_config;
mod resource_flavor;
mod resource_group;
mod topology;
mod topology_assignment;
mod workload;
mod workload_priority_class;
mod workload_status;

pub use crate::shared_maps::{SharedNames, SharedQuantities};

pub use self::{
    admission_check::*, admission_check_state::*, cluster_queue::*, cluster_queue_status::*,
    cohort::*, fair_sharing::*, local_queue::*, multi_kueue::*, provisioning_request_config::*,
    resource_flavor::*, resource_group::*, topology::*, topology_assignment::*, workload::*,
    workload_priority_class::*, workload_status::*,
};
