//! The job of a Workload among its owners.

use crds::{meta::controller, v1beta2::Workload};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The controller, else the first owner: a pod group has many owners and no controller.
pub(super) fn job_owner(workload: &Workload) -> Option<&OwnerReference> {
    let mut owners = workload.metadata.owner_references.iter().flatten();
    controller(&workload.metadata).or_else(|| owners.next())
}
