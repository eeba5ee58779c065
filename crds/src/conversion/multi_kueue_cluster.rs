//! MultiKueueClusters: v1beta2 has one of two sources, v1beta1 always has a kubeconfig, possibly an empty one.

use serde_json::Value;

use super::{ConvertedParts, Object};

pub(super) fn to_v1beta2(parts: &mut ConvertedParts) {
    let mut source = Object::new();
    for member in ["clusterProfileRef", "kubeConfig"] {
        if let Some(value) = parts.spec.remove(member).filter(Value::is_object) {
            source.insert(member.to_owned(), value);
        }
    }
    // v1beta1 writes an empty `kubeConfig` beside a ClusterProfile; v1beta2 allows one source.
    let located = |config: &Value| config["location"].as_str().is_some_and(|text| !text.is_empty());
    if !source.get("kubeConfig").is_some_and(located) {
        source.remove("kubeConfig");
    }
    if !source.is_empty() {
        parts.spec.insert("clusterSource".into(), Value::Object(source));
    }
}

pub(super) fn to_v1beta1(parts: &mut ConvertedParts) {
    if let Some(Value::Object(source)) = parts.spec.remove("clusterSource") {
        parts.spec.extend(source);
    }
}
