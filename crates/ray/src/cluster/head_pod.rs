//! The pod of the head.
//!
//! Source: docs/reference/ray.md §3.

use serde_json::{Value, json};

use super::{
    access::service_account_name,
    autoscaler,
    context::ClusterContext,
    gcs_storage,
    pod_metadata::{PodIdentity, keeps_command, pod_metadata, pod_name},
    ray_container::{self, set_default},
    ray_env::{add_pod_token, append_head_address},
    spec_hash::recreate_hash,
    start_command::RayNode,
    workload_slice,
};
use crate::{
    json::{field, list, list_if_any, object, text},
    names,
};

/// The pod of the head, as it is created.
pub(crate) fn head_pod(context: &ClusterContext<'_>) -> Value {
    let group = &context.spec.head_group_spec;
    let identity = PodIdentity {
        node_type: "head",
        group: names::HEAD_GROUP,
        prefix: context.name().to_owned(),
        labels: &group.labels,
    };
    let mut metadata = pod_metadata(context, &identity, &group.template);
    annotate(context, &mut metadata);
    if context.settings.deterministic_head_name {
        object(&mut metadata).remove("generateName");
        let prefix: String = context.name().chars().take(50).collect();
        metadata["name"] = json!(format!("{prefix}-head"));
    } else if let Some(given) = given_name(context) {
        metadata["name"] = json!(given);
    } else {
        metadata["name"] = json!(pod_name(context, &metadata, "head", &[]));
    }
    let spec = pod_spec(context, keeps_command(&metadata));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// The name of the template. Workers have none, because a group has many.
fn given_name<'a>(context: &ClusterContext<'a>) -> Option<&'a str> {
    let given = text(&context.spec.head_group_spec.template["metadata"]["name"]);
    Some(given).filter(|given| !given.is_empty())
}

/// Whether the name of the head is known before it is made.
pub(crate) fn has_fixed_name(context: &ClusterContext<'_>) -> bool {
    context.settings.deterministic_head_name || given_name(context).is_some()
}

fn pod_spec(context: &ClusterContext<'_>, keeps_command: bool) -> Value {
    let group = &context.spec.head_group_spec;
    let mut spec = group.template["spec"].clone();
    // As recorded: of a head only the init containers have these variables.
    for container in list_if_any(&mut spec, "initContainers") {
        append_head_address(context, container);
    }
    add_pod_token(context, &mut spec);
    let node = RayNode {
        is_head: true,
        params: &group.ray_start_params,
        resources: &group.resources,
        labels: &group.labels,
        keeps_command,
    };
    if context.is_autoscaling() {
        set_default(&mut spec, "serviceAccountName", json!(service_account_name(context)));
        autoscaler::add_sidecar(context, &mut spec);
    }
    ray_container::complete(context, node, &mut spec);
    gcs_storage::mount(context, &mut spec);
    set_restart_policy(context, &mut spec);
    workload_slice::gate(&group.template, &mut spec);
    // At the end: the first container of a pod is the Ray container everywhere.
    list(&mut spec, "containers").extend(context.settings.pods.head_sidecars.iter().cloned());
    spec
}

/// The second autoscaler replaces nodes itself, so their containers are not restarted.
pub(crate) fn set_restart_policy(context: &ClusterContext<'_>, spec: &mut Value) {
    if context.runs_autoscaler_v2() {
        *field(spec, "restartPolicy") = json!("Never");
    }
}

fn annotate(context: &ClusterContext<'_>, metadata: &mut Value) {
    let annotations = field(metadata, "annotations");
    let mut set = |key: &str, value: String| {
        *field(annotations, key) = json!(value);
    };
    set(names::FT_ENABLED, context.is_fault_tolerant().to_string());
    // Clusters share a Redis, and tell their keys apart by a prefix; a volume has one cluster.
    if context.is_fault_tolerant() && !context.has_embedded_storage() {
        set(names::STORAGE_NAMESPACE, context.storage_namespace());
    }
    set(names::RECREATE_HASH, recreate_hash(&context.cluster["spec"]));
    set(names::OPERATOR_VERSION, context.settings.version.clone());
}
