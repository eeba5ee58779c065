//! The request of an attempt.

use std::collections::BTreeMap;

use crds::{
    names::{MANAGED, annotations::PROVISIONING_PREFIX},
    v1beta2::{ProvisioningRequestConfigSpec, Workload},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{
    api::{
        ProvisioningRequest, ProvisioningRequestSpec, ProvisioningRequestStatus, RequestedPods,
        TemplateReference,
    },
    attempt::template_name,
    requested_pods::EntryPods,
    template::owned_by_workload,
};

/// The request of this name.
#[must_use]
pub fn new_request(
    workload: &Workload,
    name: &str,
    config: &ProvisioningRequestConfigSpec,
    entries: &[EntryPods<'_>],
) -> ProvisioningRequest {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: workload.metadata.namespace.clone(),
        labels: Some([(MANAGED.to_owned(), "true".to_owned())].into()),
        owner_references: Some(vec![owned_by_workload(workload)]),
        ..ObjectMeta::default()
    };
    let pods = |entry: &EntryPods<'_>| RequestedPods {
        count: entry.count,
        pod_template_ref: TemplateReference { name: template_name(name, &entry.pod_set.name) },
    };
    let spec = ProvisioningRequestSpec {
        parameters: parameters(workload, config),
        pod_sets: entries.iter().map(pods).collect(),
        provisioning_class_name: config.provisioning_class_name.clone(),
    };
    ProvisioningRequest { metadata, spec, status: ProvisioningRequestStatus::default() }
}

/// Whether a request asks for what the config says: its class, and its parameters unless the Workload overrides them.
#[must_use]
pub fn matches_config(
    request: &ProvisioningRequest,
    workload: &Workload,
    config: &ProvisioningRequestConfigSpec,
) -> bool {
    let (given, wanted) = (&request.spec.parameters, parameters(workload, config));
    let mut configured = config.parameters.keys();
    request.spec.provisioning_class_name == config.provisioning_class_name
        && configured.all(|key| given.get(key) == wanted.get(key))
}

/// Parameters of the config, and those of the Workload's annotations, which override them.
fn parameters(
    workload: &Workload,
    config: &ProvisioningRequestConfigSpec,
) -> BTreeMap<String, String> {
    let annotations = workload.metadata.annotations.iter().flatten();
    let own = annotations.filter_map(|(key, value)| {
        key.strip_prefix(PROVISIONING_PREFIX).map(|name| (name.to_owned(), value.clone()))
    });
    config.parameters.clone().into_iter().chain(own).collect()
}
