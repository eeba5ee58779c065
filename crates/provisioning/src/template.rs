//! The PodTemplate of an entry: pods as they will be, for the simulation of an autoscaler.
//!
//! It is the template of the pod set with what the assigned flavors add, and with limits as missing requests. The Workload owns it
//! until the request exists, so that it is deleted with the Workload if that never comes to be.

use crds::{
    meta::controller,
    names::{
        MANAGED,
        annotations::{
            CONSUME_PROVISIONING_REQUEST, PROVISIONING_CLASS_NAME, WORKLOAD, WORKLOAD_SLICE_NAME,
        },
    },
    pod::{Container, PodTemplate, ResourceRequirements},
    v1beta2::Workload,
};
use jobs::admitted_infos::{AdmittedInfosError, AssignedFlavors, add_flavors};
use k8s_openapi::{
    Resource,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use crate::{
    api::{EntryTemplate, ProvisioningRequest},
    attempt::template_name,
    requested_pods::EntryPods,
};

/// Annotations of an earlier admission. Pods of this one must neither use its room nor count as its pods.
const OF_EARLIER_ADMISSIONS: [&str; 4] =
    [CONSUME_PROVISIONING_REQUEST, PROVISIONING_CLASS_NAME, WORKLOAD, WORKLOAD_SLICE_NAME];

/// The template of an entry of the request of this name.
///
/// # Errors
/// If a flavor is missing, or its node labels contradict the template.
pub fn entry_template(
    workload: &Workload,
    request: &str,
    entry: &EntryPods<'_>,
    flavors: AssignedFlavors<'_>,
) -> Result<EntryTemplate, AdmittedInfosError> {
    let mut template = entry.pod_set.template.clone();
    // An autoscaler makes no room for pods with a gate.
    if let Some(spec) = &mut template.spec {
        spec.rest.remove("schedulingGates");
    }
    if let Some(metadata) = &mut template.metadata {
        metadata.annotations.retain(|key, _| !OF_EARLIER_ADMISSIONS.contains(&key.as_str()));
    }
    add_flavors(&mut template, workload, entry.assignment, flavors)?;
    complete_requests(&mut template);
    let metadata = ObjectMeta {
        name: Some(template_name(request, &entry.pod_set.name)),
        namespace: workload.metadata.namespace.clone(),
        labels: Some([(MANAGED.to_owned(), "true".to_owned())].into()),
        owner_references: Some(vec![owned_by_workload(workload)]),
        ..ObjectMeta::default()
    };
    Ok(EntryTemplate { metadata, template })
}

/// Which object controls a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateOwner {
    /// The Workload: no request uses it yet.
    Workload,
    /// The request.
    Request,
    /// A deleted request of the name. Kubernetes deletes the template some time.
    FormerRequest,
    /// Another object, or none.
    Other,
}

impl TemplateOwner {
    /// Of a template for the request of this name and, if it exists, uid.
    #[must_use]
    pub fn of(
        template: &EntryTemplate,
        workload: &Workload,
        request_name: &str,
        request_uid: Option<&str>,
    ) -> Self {
        let Some(owner) = controller(&template.metadata) else {
            return Self::Other;
        };
        if workload.metadata.uid.as_deref() == Some(&*owner.uid) {
            Self::Workload
        } else if request_uid == Some(&*owner.uid) {
            Self::Request
        } else if (&*owner.kind, &*owner.name) == (ProvisioningRequest::KIND, request_name) {
            Self::FormerRequest
        } else {
            Self::Other
        }
    }
}

/// Owners of a template once its request exists: the request controls it in place of the Workload.
#[must_use]
pub fn owners_with_request(
    template: &EntryTemplate,
    request: &ProvisioningRequest,
) -> Vec<OwnerReference> {
    let owners = template.metadata.owner_references.iter().flatten();
    let others = owners.filter(|owner| owner.controller != Some(true)).cloned();
    let request = OwnerReference {
        api_version: ProvisioningRequest::API_VERSION.to_owned(),
        kind: ProvisioningRequest::KIND.to_owned(),
        name: request.metadata.name.clone().unwrap_or_default(),
        uid: request.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    others.chain([request]).collect()
}

/// The controlling owner reference of a Workload.
pub(crate) fn owned_by_workload(workload: &Workload) -> OwnerReference {
    OwnerReference {
        api_version: Workload::API_VERSION.to_owned(),
        kind: Workload::KIND.to_owned(),
        name: workload.metadata.name.clone().unwrap_or_default(),
        uid: workload.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Limits as missing requests (docs/reference/kueue.md §2.7): no API server has defaulted this template.
fn complete_requests(template: &mut PodTemplate) {
    let Some(spec) = template.spec.as_deref_mut() else { return };
    let containers = spec.init_containers.iter_mut().chain(&mut spec.containers);
    let of_containers = containers.filter_map(|one: &mut Container| one.resources.as_mut());
    for resources in of_containers.chain(&mut spec.resources) {
        let ResourceRequirements { limits, requests, .. } = &mut **resources;
        for (name, limit) in limits {
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
}
