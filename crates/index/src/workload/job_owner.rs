//! The job of a Workload among its owners.

use crds::v1beta2::Workload;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The controller, else the first owner: a pod group has many owners and no controller.
pub(super) fn job_owner(workload: &Workload) -> Option<&OwnerReference> {
    let owners = workload.metadata.owner_references.as_deref().unwrap_or_default();
    let controller = owners.iter().find(|owner| owner.controller == Some(true));
    controller.or(owners.first())
}
