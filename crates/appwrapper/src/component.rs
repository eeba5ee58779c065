//! The object of a component, as it is created.
//!
//! Source: docs/reference/appwrapper.md §2 "Create step".

use serde_json::{Value, json};

use crate::{
    json::{field, items, list, name, object, text},
    names,
    pod_sets::pod_sets,
    settings::WrapperSettings,
    template_path::{TemplatePathError, value_at},
    v1beta2::{AppWrapperComponent, AppWrapperPodSetInfo},
};

/// The most characters of a name that is made here: those of a generated name.
const LONGEST_NAME: usize = 63;

/// Why an object cannot be made from its component.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ComponentError {
    /// A pod set is not where it should be.
    #[error(transparent)]
    Path(#[from] TemplatePathError),
    /// A template has another value than admission wants.
    #[error("conflict updating {field}: conflict for key={key}, value1={present}, value2={wanted}")]
    Conflict { field: &'static str, key: String, present: String, wanted: String },
    /// An AppWrapper within an AppWrapper.
    #[error("an AppWrapper cannot contain the AppWrapper {0}")]
    Nested(String),
    /// A component of another namespace.
    #[error("component namespace {component:?} is different from appwrapper namespace {own:?}")]
    Namespace { component: String, own: String },
}

/// The name of the object of a component: that of its template, or one that follows from `generateName`.
///
/// With a name of the API server a create without an answer would be repeated under another name.
#[must_use]
pub fn component_name(wrapper: &Value, index: usize, template: &Value) -> String {
    let prefix = text(&template["metadata"]["generateName"]);
    if !name(template).is_empty() || prefix.is_empty() {
        return name(template).to_owned();
    }
    let uid: String = text(&wrapper["metadata"]["uid"]).chars().take(8).collect();
    let suffix = format!("{uid}{index}");
    let prefix: String = prefix.chars().take(LONGEST_NAME.saturating_sub(suffix.len())).collect();
    format!("{prefix}{suffix}")
}

/// The object with the label of its AppWrapper, what admission added, and the AppWrapper as controller.
pub(crate) fn component_object(
    wrapper: &Value,
    (index, component): (usize, &AppWrapperComponent),
    settings: &WrapperSettings,
) -> Result<Value, ComponentError> {
    let mut made = component.template.clone();
    let (namespace, own) =
        (text(&made["metadata"]["namespace"]), text(&wrapper["metadata"]["namespace"]));
    if !namespace.is_empty() && namespace != own {
        return Err(ComponentError::Namespace {
            component: namespace.to_owned(),
            own: own.to_owned(),
        });
    }
    // The webhook refuses this as well, but may be switched off.
    if is_app_wrapper(&made) {
        return Err(ComponentError::Nested(name(&made).to_owned()));
    }
    let label = json!(name(wrapper));
    for (index, pod_set) in pod_sets(component).iter().enumerate() {
        let template = value_at(&mut made, &pod_set.path)?;
        if !template.is_object() {
            return Err(TemplatePathError::NoObject(pod_set.path.clone()).into());
        }
        if !template["spec"].is_object() {
            return Err(TemplatePathError::NoPod(pod_set.path.clone()).into());
        }
        *field(field(field(template, "metadata"), "labels"), names::WRAPPER_LABEL) = label.clone();
        // Fewer or more infos than pod sets are accepted, as recorded.
        if let Some(info) = component.pod_set_infos.get(index) {
            admit(template, info)?;
        }
        prepare_pod(field(template, "spec"), settings);
    }
    let name = component_name(wrapper, index, &component.template);
    let metadata = field(&mut made, "metadata");
    if !name.is_empty() {
        object(metadata).remove("generateName");
        *field(metadata, "name") = json!(name);
    }
    *field(field(metadata, "labels"), names::WRAPPER_LABEL) = label;
    // The object lives in the namespace of its AppWrapper; for a kind without namespaces the API server ignores this.
    *field(metadata, "namespace") = wrapper["metadata"]["namespace"].clone();
    *field(metadata, "ownerReferences") = json!([{
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "name": wrapper["metadata"]["name"],
        "uid": wrapper["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    }]);
    Ok(made)
}

/// Whether an object is an AppWrapper of any version.
pub(crate) fn is_app_wrapper(template: &Value) -> bool {
    text(&template["apiVersion"]).starts_with("workload.codeflare.dev/")
        && template["kind"] == "AppWrapper"
}

/// Adds what admission decided. A different value that is there already is an error.
fn admit(template: &mut Value, info: &AppWrapperPodSetInfo) -> Result<(), ComponentError> {
    let metadata = field(template, "metadata");
    for (name, entries) in [("annotations", &info.annotations), ("labels", &info.labels)] {
        merge(metadata, name, entries)?;
    }
    let spec = field(template, "spec");
    merge(spec, "nodeSelector", &info.node_selector)?;
    list_extend(spec, "tolerations", info.tolerations.iter().map(|it| json!(it)));
    // Gates are a map by name in the API: the API server refuses a second one of a name.
    for gate in &info.scheduling_gates {
        if !items(&spec["schedulingGates"]).iter().any(|present| present["name"] == gate.name) {
            list(spec, "schedulingGates").push(json!({"name": gate.name}));
        }
    }
    Ok(())
}

/// Appends to a list, which is not made for nothing.
fn list_extend(parent: &mut Value, name: &str, more: impl Iterator<Item = Value>) {
    for item in more {
        list(parent, name).push(item);
    }
}

fn merge(
    parent: &mut Value,
    name: &'static str,
    entries: &std::collections::BTreeMap<String, String>,
) -> Result<(), ComponentError> {
    for (key, wanted) in entries {
        let present = field(field(parent, name), key);
        match present.as_str().map(str::to_owned) {
            Some(present) if present != *wanted => {
                return Err(ComponentError::Conflict {
                    field: name,
                    key: key.clone(),
                    present,
                    wanted: wanted.clone(),
                });
            }
            // An equal value is no conflict.
            _ => *present = json!(wanted),
        }
    }
    Ok(())
}

/// The scheduler, and the distance from nodes that Autopilot marked.
fn prepare_pod(spec: &mut Value, settings: &WrapperSettings) {
    if let Some(scheduler) = &settings.scheduler_name
        && text(&spec["schedulerName"]).is_empty()
    {
        *field(spec, "schedulerName") = json!(scheduler);
    }
    let asks = |resource: &String| requests(spec, resource);
    // By the resource alone, as recorded, whether or not a node is marked at present.
    if settings.injects_anti_affinities && settings.autopilot_resources.iter().any(asks) {
        avoid_marked_nodes(spec, settings.autopilot_weight);
    }
}

/// Whether a container or an init container of a pod has a limit or a request for a resource.
fn requests(spec: &Value, resource: &str) -> bool {
    ["containers", "initContainers"].iter().any(|list| any_requests(&spec[*list], resource))
}

/// Whether one of these containers has a limit or a request for a resource.
pub(crate) fn any_requests(containers: &Value, resource: &str) -> bool {
    let containers = items(containers).iter();
    let mut lists =
        containers.flat_map(|it| [&it["resources"]["limits"], &it["resources"]["requests"]]);
    lists.any(|list| !list[resource].is_null() && list[resource] != "0" && list[resource] != 0)
}

fn avoid_marked_nodes(spec: &mut Value, weight: i64) {
    let not_in = |values: &[&str]| json!({"key": names::AUTOPILOT_LABEL, "operator": "NotIn", "values": values});
    let affinity = field(field(spec, "affinity"), "nodeAffinity");
    let required = field(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    let terms = list(required, "nodeSelectorTerms");
    if terms.is_empty() {
        terms.push(json!({}));
    }
    // Terms are alternatives, so each of them needs the expression.
    for term in terms {
        object(term);
        list(term, "matchExpressions").push(not_in(&["TESTING", "EVICT"]));
    }
    let preferred = list(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    preferred.push(json!({
        "weight": weight,
        "preference": {"matchExpressions": [not_in(&["WARN"])]},
    }));
}
