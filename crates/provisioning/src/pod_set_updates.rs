//! What a provisioned request adds to the pods: annotations by which they use its room, and node selectors from details of the class.
//!
//! Kueue adds it to the first pod set of each entry alone. Here it is added to every pod set that the entry covers, since pods
//! without it would not be placed in the room that was provided for them.

use std::collections::BTreeMap;

use crds::{
    names::annotations::{CONSUME_PROVISIONING_REQUEST, PROVISIONING_CLASS_NAME},
    v1beta2::{PodSet, PodSetUpdate, ProvisioningRequestConfigSpec, Workload},
    validation::labels::value_problems,
};

use crate::{api::ProvisioningRequest, attempt::template_name, requested_pods::covered};

/// Additions by pod set.
#[derive(Debug, Default, PartialEq)]
pub struct ProvidedUpdates {
    /// The additions.
    pub pod_set_updates: Vec<PodSetUpdate>,
    /// What the message says about details that are missing or no label values; empty without any.
    pub left_out: String,
}

/// Additions of a request.
#[must_use]
pub fn updates(
    workload: &Workload,
    request: &ProvisioningRequest,
    config: &ProvisioningRequestConfigSpec,
) -> ProvidedUpdates {
    let name = request.metadata.name.clone().unwrap_or_default();
    let annotations: BTreeMap<String, String> = [
        (CONSUME_PROVISIONING_REQUEST.to_owned(), name.clone()),
        (PROVISIONING_CLASS_NAME.to_owned(), request.spec.provisioning_class_name.clone()),
    ]
    .into();
    let (node_selector, left_out) = node_selector(request, config);
    // An entry names its first pod set by its template. The config may have changed since.
    let is_named = |pod_set: &PodSet| {
        let template = template_name(&name, &pod_set.name);
        request.spec.pod_sets.iter().any(|entry| entry.pod_template_ref.name == template)
    };
    let is_covered = |pod_set: &PodSet| covered(workload, config).any(|one| one == pod_set);
    let pod_sets = workload.spec.pod_sets.iter();
    let concerned = pod_sets.filter(|pod_set| is_named(pod_set) || is_covered(pod_set));
    let pod_set_updates = concerned.map(|pod_set| PodSetUpdate {
        name: pod_set.name.clone(),
        annotations: annotations.clone(),
        node_selector: node_selector.clone(),
        ..PodSetUpdate::default()
    });
    ProvidedUpdates { pod_set_updates: pod_set_updates.collect(), left_out }
}

/// Node selectors with details of the class as values, and messages about details without a usable value.
fn node_selector(
    request: &ProvisioningRequest,
    config: &ProvisioningRequestConfigSpec,
) -> (BTreeMap<String, String>, String) {
    let details = &request.status.provisioning_class_details;
    let (mut selector, mut left_out) = (BTreeMap::new(), String::new());
    let wanted = config.pod_set_updates.iter().flat_map(|updates| &updates.node_selector);
    for one in wanted {
        let detail = &one.value_from_provisioning_class_detail;
        match details.get(detail) {
            Some(value) if value_problems(value).is_empty() => {
                selector.insert(one.key.clone(), value.clone());
            }
            // A value that no label has would make every pod of the job invalid.
            Some(_) => left_out += &format!("; detail {detail:?} of the class is no label value"),
            None => left_out += &format!("; the class has no detail {detail:?}"),
        }
    }
    (selector, left_out)
}
