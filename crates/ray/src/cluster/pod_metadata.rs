//! Names, labels and annotations of pods.
//!
//! Source: docs/reference/ray.md §1 "Naming helpers", §3 "Pod metadata".

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::{ClusterContext, Origin, label_value, letters};
use crate::{
    json::{annotation, items, text, texts},
    names,
    settings::RayPodDefaults,
};

/// The most characters of the name of a pod: those of a generated name.
const LONGEST_NAME: usize = 63;

/// Characters that follow from the place of a pod: enough that no two of a thousand pods have the same.
const NAME_LETTERS: usize = 8;

/// A pod of a group.
pub(crate) struct PodIdentity<'a> {
    /// `head` or `worker`.
    pub(crate) node_type: &'static str,
    /// The group.
    pub(crate) group: &'a str,
    /// What the name begins with.
    pub(crate) prefix: String,
    /// Labels of the group.
    pub(crate) labels: &'a BTreeMap<String, String>,
}

/// The metadata of a pod, with that of its template.
pub(crate) fn pod_metadata(
    context: &ClusterContext<'_>,
    identity: &PodIdentity<'_>,
    template: &Value,
) -> Value {
    let defaults: &RayPodDefaults = &context.settings.pods;
    let given = &template["metadata"];
    let mut labels: BTreeMap<String, String> = defaults.labels.clone();
    labels.extend(base_labels(context, identity));
    labels.extend(texts(&given["labels"]));
    labels.extend(identity.labels.clone());
    // The operator finds its pods by these labels.
    for (key, value) in reserved_labels(context, identity) {
        labels.insert(key.to_owned(), value);
    }
    if context.origin() == Origin::Service {
        // The head serves only after its proxy was seen healthy.
        let serves = identity.node_type == "worker";
        labels.insert(names::SERVE_LABEL.to_owned(), serves.to_string());
    }
    let mut annotations = defaults.annotations.clone();
    annotations.extend(texts(&given["annotations"]));
    if annotation(context.cluster, names::OVERWRITE_COMMAND).eq_ignore_ascii_case("true") {
        annotations.insert(names::OVERWRITE_COMMAND.to_owned(), "true".to_owned());
    }
    let mut metadata = json!({
        "generateName": generate_name(&identity.prefix, identity.node_type),
        "namespace": context.namespace(),
        "labels": labels,
        "ownerReferences": [context.owner_reference()],
    });
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    // A deleted pod counts as present until its finalizers are gone, like one that ends slowly.
    if !items(&given["finalizers"]).is_empty() {
        metadata["finalizers"] = given["finalizers"].clone();
    }
    metadata
}

/// Whether the annotation of the cluster, or of a template, leaves the command of its container as it is.
pub(crate) fn keeps_command(metadata: &Value) -> bool {
    text(&metadata["annotations"][names::OVERWRITE_COMMAND]).eq_ignore_ascii_case("true")
}

/// The name of a pod: what `generateName` says, and characters that follow from the cluster and from the place of the pod in it.
///
/// A create without an answer is repeated with the same name, so that it meets the pod of the first one. With a name of the API
/// server there would be a second head. `known` are the names of pods that the place of a worker has already, such as one that is being
/// deleted: the next one has another name. A head is made when the cluster has none, so all its heads have one name.
pub(crate) fn pod_name(
    context: &ClusterContext<'_>,
    metadata: &Value,
    place: &str,
    known: &[String],
) -> String {
    let mut parts = vec![context.uid().as_bytes(), place.as_bytes()];
    let mut known: Vec<&String> = known.iter().collect();
    known.sort_unstable();
    for name in known {
        parts.extend([b"/", name.as_bytes()]);
    }
    let base = text(&metadata["generateName"]);
    // As long as a generated name, which is that of the pod's host as well.
    let base: String = base.chars().take(LONGEST_NAME - NAME_LETTERS).collect();
    format!("{base}{}", letters(&parts, NAME_LETTERS))
}

/// The first 50 characters of the prefix, and the type of the node.
fn generate_name(prefix: &str, node_type: &str) -> String {
    let prefix: String = prefix.chars().take(50).collect();
    format!("{prefix}-{node_type}-").to_lowercase()
}

fn base_labels(context: &ClusterContext<'_>, identity: &PodIdentity<'_>) -> Vec<(String, String)> {
    let identifier = label_value(&format!("{}-{}", context.name(), identity.node_type));
    let labels = [
        (names::IS_RAY_NODE_LABEL, "yes".to_owned()),
        (names::IDENTIFIER_LABEL, identifier),
        (names::APP_NAME_LABEL, names::APPLICATION.to_owned()),
        (names::CREATED_BY_LABEL, names::CREATED_BY.to_owned()),
    ];
    labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn reserved_labels(
    context: &ClusterContext<'_>,
    identity: &PodIdentity<'_>,
) -> [(&'static str, String); 3] {
    [
        (names::CLUSTER_LABEL, context.name().to_owned()),
        (names::NODE_TYPE_LABEL, identity.node_type.to_owned()),
        (names::GROUP_LABEL, identity.group.to_owned()),
    ]
}
