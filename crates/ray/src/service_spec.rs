//! The change of a Service that is to lead to another cluster.
//!
//! Source: docs/reference/ray.md §8 "Children of RayJob", §9.

use serde_json::{Value, json};

use crate::json::{merge_patch, object};

/// Fields that the API server or its webhooks fill in. The server keeps them when the type of the Service still has them, and may refuse
/// another value.
const ALLOCATED: &[&str] = &[
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "healthCheckNodePort",
    "loadBalancerClass",
];

/// The JSON merge patch that replaces the spec of a Service. Fields without a wanted value get the default of the API server.
pub(crate) fn replacement(present: &Value, wanted: &Value) -> Value {
    let mut spec = wanted["spec"].clone();
    let fields = object(&mut spec);
    // The address of a Service cannot be changed, nor whether it has one.
    for fixed in ["clusterIP", "clusterIPs"] {
        fields.remove(fixed);
    }
    // Nor can its class, nor whether it has one, while the type stays.
    if [present, wanted].iter().all(|service| service["spec"]["type"] == "LoadBalancer") {
        fields.remove("loadBalancerClass");
    }
    // A merge patch keeps what it does not name, here and in the selector.
    for (field, _) in present["spec"].as_object().into_iter().flatten() {
        if !ALLOCATED.contains(&field.as_str()) && !fields.contains_key(field) {
            fields.insert(field.clone(), Value::Null);
        }
    }
    let selector = &wanted["spec"]["selector"];
    if let Some(change) = merge_patch(&present["spec"]["selector"], selector) {
        fields.insert("selector".to_owned(), change);
    }
    json!({"spec": spec})
}
