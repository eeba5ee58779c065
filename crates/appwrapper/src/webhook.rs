//! What is refused and defaulted when an AppWrapper is created or changed.
//!
//! Source: docs/reference/appwrapper.md §5.

use std::collections::BTreeMap;

use crds::decode::from_value;
use crds::validation::{Errors, FieldError};
use serde_json::{Value, json};

use crate::{
    component::is_app_wrapper,
    declared_pod_sets::{contradiction_to, inference_fault},
    json::{field, items, label, text},
    names,
    pod_sets::inferred,
    settings::WrapperSettings,
    template_path::check_pod_template,
    v1beta2::{AppWrapperComponent, AppWrapperSpec},
};

/// The most pod sets of an AppWrapper.
const MOST_POD_SETS: usize = 8;

const IMMUTABLE: &str = "attempt to change immutable field";

/// Labels that say which user made an AppWrapper.
const USER_LABELS: &[&str] = &[names::USER_LABEL, names::USER_ID_LABEL];

/// The user of a request, and what the user may not do.
#[derive(Clone, Debug, Default)]
pub struct WrapperRequester {
    /// The name.
    pub name: String,
    /// The id.
    pub id: String,
    /// Components that the user may not create, by index: the resource of the kind, such as `pods`, or `*` if the API server has none.
    pub forbidden: BTreeMap<usize, String>,
}

/// Sets the queue and the labels of the user. Labels of a user that are there already are overwritten.
pub fn default(wrapper: &mut Value, requester: &WrapperRequester, settings: &WrapperSettings) {
    let has_queue = !label(wrapper, names::QUEUE_LABEL).is_empty();
    let labels = field(field(wrapper, "metadata"), "labels");
    if let Some(queue) = settings.default_queue_name.as_ref().filter(|_| !has_queue) {
        *field(labels, names::QUEUE_LABEL) = json!(queue);
    }
    *field(labels, names::USER_LABEL) = json!(label_value(&requester.name));
    *field(labels, names::USER_ID_LABEL) = json!(label_value(&requester.id));
}

/// A text as the value of a label: other characters become `_`.
fn label_value(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let replaced = text.chars().map(|c| if allowed(c) { c } else { '_' }).take(63);
    let replaced: String = replaced.collect();
    // The API server refuses a label value that begins or ends with another character.
    replaced.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

fn spec_of(wrapper: &Value) -> Result<AppWrapperSpec, FieldError> {
    let spec = from_value(&wrapper["spec"]);
    spec.map_err(|error| FieldError::invalid_together("spec", error.to_string()))
}

/// What is wrong with a new AppWrapper.
#[must_use]
pub fn validate_create(
    wrapper: &Value,
    requester: &WrapperRequester,
    settings: &WrapperSettings,
) -> Errors {
    let spec = match spec_of(wrapper) {
        Ok(spec) => spec,
        Err(error) => return vec![error],
    };
    let mut errors = Errors::new();
    let mut n_pod_sets = 0;
    for (index, component) in spec.components.iter().enumerate() {
        let path = format!("spec.components[{index}]");
        errors.extend(check_object(&path, wrapper, &component.template));
        // The controller makes the object with its own rights, which may exceed those of the user.
        if let Some(resource) = requester.forbidden.get(&index).filter(|_| settings.user_rbac_check)
        {
            let namespace = text(&wrapper["metadata"]["namespace"]);
            let detail = format!(
                "User {} is not authorized to create {resource} in {namespace}",
                requester.name
            );
            errors.push(FieldError::forbidden(format!("{path}.template"), detail));
        }
        errors.extend(check_paths(&path, component));
        let (faults, count) = check_pod_sets(&path, component);
        errors.extend(faults);
        n_pod_sets += count;
    }
    // With 0 of 0 pods the AppWrapper would have succeeded at once.
    if n_pod_sets == 0 {
        let detail = "components contains no podspecs";
        errors.push(FieldError::invalid_together("spec.components", detail));
    } else if n_pod_sets > MOST_POD_SETS {
        let detail = format!(
            "components contains {n_pod_sets} podspecs; at most {MOST_POD_SETS} are allowed"
        );
        errors.push(FieldError::invalid_together("spec.components", detail));
    }
    errors
}

fn check_object(path: &str, wrapper: &Value, template: &Value) -> Errors {
    let mut errors = Errors::new();
    if is_app_wrapper(template) {
        let detail = "Nested AppWrappers are forbidden";
        errors.push(FieldError::forbidden(format!("{path}.template"), detail));
    }
    let namespace = text(&template["metadata"]["namespace"]);
    if !namespace.is_empty() && namespace != text(&wrapper["metadata"]["namespace"]) {
        let detail = "AppWrappers cannot create objects in other namespaces";
        errors.push(FieldError::forbidden(format!("{path}.template.metadata.namespace"), detail));
    }
    errors
}

/// What is wrong with the paths of declared pod sets.
fn check_paths(path: &str, component: &AppWrapperComponent) -> Errors {
    let mut errors = Errors::new();
    for (index, pod_set) in component.pod_sets.iter().enumerate() {
        let path = format!("{path}.podSets[{index}].path");
        if pod_set.path.is_empty() {
            errors.push(FieldError::required(&path, "podspec must specify path"));
        }
        if let Err(error) = check_pod_template(&component.template, &pod_set.path) {
            let detail = format!("path does not refer to a v1.PodSpecTemplate: {error}");
            errors.push(FieldError::invalid(path, &pod_set.path, detail));
        }
    }
    errors
}

/// What is wrong with the pod sets of a component, and their number. It is 0 if they cannot be inferred, which is an error of its own.
fn check_pod_sets(path: &str, component: &AppWrapperComponent) -> (Errors, usize) {
    if let Some(fault) = inference_fault(&component.template) {
        let detail = format!("error inferring PodSets: {fault}");
        return (vec![FieldError::invalid_together(format!("{path}.template"), detail)], 0);
    }
    let known = inferred(&component.template).unwrap_or_default();
    let fault = contradiction_to(&known, component);
    let fault = fault.map(|it| FieldError::invalid_together(format!("{path}.podSets"), it));
    (fault.into_iter().collect(), component.pod_sets.len().max(known.len()))
}

/// What is wrong with a change. Of the spec only `suspend`, annotations and what admission adds may change.
#[must_use]
pub fn validate_update(new: &Value, old: &Value) -> Errors {
    let (now, before) = (items(&new["spec"]["components"]), items(&old["spec"]["components"]));
    if now.len() != before.len() {
        // Alone: nothing else says which component is which.
        return vec![FieldError::forbidden("spec.components", IMMUTABLE)];
    }
    let mut errors = Errors::new();
    for (index, (now, before)) in now.iter().zip(before).enumerate() {
        errors.extend(changes(&format!("spec.components[{index}]"), now, before));
    }
    let labels = USER_LABELS.iter().filter(|name| label(new, name) != label(old, name));
    let labels = labels.map(|name| format!("metadata.labels[{name}]"));
    let manager =
        (new["spec"]["managedBy"] != old["spec"]["managedBy"]).then(|| "spec.managedBy".to_owned());
    let changed = labels.chain(manager);
    errors.extend(changed.map(|path| FieldError::forbidden(path, IMMUTABLE)));
    errors
}

/// What has changed in a component.
fn changes(path: &str, now: &Value, before: &Value) -> Errors {
    let mut errors = Errors::new();
    let mut check = |path: String, same: bool| {
        if !same {
            errors.push(FieldError::forbidden(path, IMMUTABLE));
        }
    };
    // The paths are those of the recorded messages; `raw` and `podsets` are no fields.
    check(format!("{path}.template.raw"), now["template"] == before["template"]);
    let (sets, old_sets) = (items(&now["podSets"]), items(&before["podSets"]));
    check(format!("{path}.podsets"), sets.len() == old_sets.len());
    let replicas = |set: &Value| set["replicas"].as_i64().unwrap_or(1);
    for (at, (set, old_set)) in sets.iter().zip(old_sets).enumerate() {
        let path = format!("{path}.podsets[{at}]");
        check(format!("{path}.replicas"), replicas(set) == replicas(old_set));
        check(format!("{path}.path"), set["path"] == old_set["path"]);
    }
    errors
}
