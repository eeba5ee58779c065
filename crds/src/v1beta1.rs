//! `kueue.x-k8s.io/v1beta1`: served for old clients, never stored.
//!
//! Types that did not change are v1beta2's.

mod admission_check;
mod admission_check_state;
mod cluster_queue;
mod cluster_queue_status;
mod cohort;
mod fair_sharing;
mod kinds;
mod local_queue;
mod multi_kueue;
mod provisioning_request_config;
mod resource_group;
mod topology;
mod workload;
mod workload_status;

pub use self::{
    admission_check::*, admission_check_state::*, cluster_queue::*, cluster_queue_status::*,
    cohort::*, fair_sharing::*, kinds::*, local_queue::*, multi_kueue::*,
    provisioning_request_config::*, resource_group::*, topology::*, workload::*,
    workload_status::*,
};
pub use crate::v1beta2::{
    AdmissionFairSharingStatus, BorrowWithinCohort, ClusterQueuePreemption, FairSharing,
    LocalQueueFairSharingStatus, LocalQueueResourceUsage, LocalQueueSpec, PodSetRequest,
    ProvisioningRequestRetryStrategy, ReclaimablePod, RequeueState, ResourceFlavorSpec,
    ResourceUsage, WorkloadSchedulingStatsEviction,
};
