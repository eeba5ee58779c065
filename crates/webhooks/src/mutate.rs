//! Mutating webhooks: what they add to objects.
//!
//! If something is added, the patch also normalizes the rest of the object as its type encodes it: quantities become
//! canonical, missing required fields get their zero value. Kueue does the same, and clients rely on the stored form. If
//! nothing is added, the patch is empty.

use crds::{
    conversion::rewrite_template,
    decode::Decode,
    names::RESOURCE_IN_USE_FINALIZER,
    v1beta2::{ClusterQueue, ResourceFlavor, Workload},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    WebhookGates, decode,
    review::{AdmissionRequest, AdmissionResponse},
};

/// Kinds with the finalizer `resource-in-use`.
///
/// Contract: `metadata` returns the metadata of the object itself. Callers add the finalizer to it once.
///
/// ```ignore
/// impl InUse for ClusterQueue {
///     fn metadata(&mut self) -> &mut ObjectMeta {
///         &mut self.metadata
///     }
/// }
/// ```
pub(super) trait InUse {
    fn metadata(&mut self) -> &mut ObjectMeta;
}

impl InUse for ClusterQueue {
    fn metadata(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl InUse for ResourceFlavor {
    fn metadata(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Adds the finalizer.
pub(super) fn protect<T: InUse + Decode + Serialize>(
    request: AdmissionRequest,
) -> AdmissionResponse {
    let add_finalizer = |object: &mut T| {
        let finalizers = object.metadata().finalizers.get_or_insert_default();
        let missing = !finalizers.iter().any(|name| name == RESOURCE_IN_USE_FINALIZER);
        if missing {
            finalizers.push(RESOURCE_IN_USE_FINALIZER.to_owned());
        }
        missing
    };
    change(request, add_finalizer, |_| ())
}

/// Without partial admission a pod set has no `minCount`.
pub(super) fn workload(request: AdmissionRequest, gates: &WebhookGates) -> AdmissionResponse {
    if gates.partial_admission {
        return match decode::object::<Workload>(request.object) {
            Ok(_) => AdmissionResponse::allowed(),
            Err(error) => AdmissionResponse::undecodable(&error),
        };
    }
    let drop_min_counts = |workload: &mut Workload| {
        let mut changed = false;
        for pod_set in &mut workload.spec.pod_sets {
            changed |= pod_set.min_count.take().is_some();
        }
        changed
    };
    change(request, drop_min_counts, |written| {
        // Kueue's encoder writes some fields of a template that are unset. Clients rely on the stored form.
        for pod_set in written["spec"]["podSets"].as_array_mut().into_iter().flatten() {
            rewrite_template(&mut pod_set["template"]);
        }
    })
}

/// Decodes and changes the object. Responds with the patch from the request to the encoded object.
fn change<T: Decode + Serialize>(
    request: AdmissionRequest,
    change: impl FnOnce(&mut T) -> bool,
    finish: impl FnOnce(&mut Value),
) -> AdmissionResponse {
    let before = request.object;
    let mut object: T = match decode::object(before.clone()) {
        Ok(object) => object,
        Err(error) => return AdmissionResponse::undecodable(&error),
    };
    if !change(&mut object) {
        return AdmissionResponse::allowed();
    }
    match serde_json::to_value(object) {
        Ok(mut written) => {
            finish(&mut written);
            AdmissionResponse::Allowed { patch: difference(&before, &written) }
        }
        Err(error) => AdmissionResponse::undecodable(&error.to_string()),
    }
}

/// The JSON patch between two objects. Unknown fields, and metadata that the type would encode differently, stay.
pub(super) fn difference(before: &Value, after: &Value) -> Vec<Value> {
    let mut patch = Vec::new();
    walk("", before, after, &mut patch);
    patch
}

fn walk(path: &str, before: &Value, after: &Value, patch: &mut Vec<Value>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => walk_object(path, before, after, patch),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                walk(&format!("{path}/{at}"), before, after, patch);
            }
        }
        // Elements of lists of another length have no counterparts, so the list is replaced as a whole.
        _ if before != after => patch.push(json!({"op": "replace", "path": path, "value": after})),
        _ => {}
    }
}

fn walk_object(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    patch: &mut Vec<Value>,
) {
    let at = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    for (key, value) in after {
        match before.get(key) {
            Some(old) => walk(&at(key), old, value, patch),
            None => patch.push(json!({"op": "add", "path": at(key), "value": value})),
        }
    }
    // Empty values stay, so that the schema validates them; so do unknown fields.
    let dropped =
        before.iter().filter(|(key, value)| !after.contains_key(*key) && is_dropped(key, value));
    for (key, _) in dropped {
        patch.push(json!({"op": "remove", "path": at(key)}));
    }
}

/// Dropped fields: null, which means unset, and a `minCount` that was removed.
fn is_dropped(key: &str, value: &Value) -> bool {
    value.is_null() || key == "minCount"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patch_adds_and_replaces_and_drops_only_nulls() {
        let before =
            json!({"a": "1000m", "b": "", "c": {"d": 1}, "unknown": 1, "e": null, "a/b": 1});
        let after = json!({"a": "1", "c": {"d": 1, "f": "0"}, "a/b": 2});
        assert_eq!(
            difference(&before, &after),
            [
                json!({"op": "replace", "path": "/a", "value": "1"}),
                json!({"op": "replace", "path": "/a~1b", "value": 2}),
                json!({"op": "add", "path": "/c/f", "value": "0"}),
                json!({"op": "remove", "path": "/e"}),
            ]
        );
    }
}
