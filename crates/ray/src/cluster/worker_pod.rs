//! The pods of workers.
//!
//! Source: docs/reference/ray.md §3.

use serde_json::{Value, json};

use super::{
    context::ClusterContext,
    head_pod::set_restart_policy,
    pod_metadata::{PodIdentity, keeps_command, pod_metadata, pod_name},
    ray_container::{self, shell},
    ray_env::{add_pod_token, append_head_address},
    start_command::RayNode,
    workload_slice,
};
use crate::{
    json::{field, label, list, list_if_any, name, named},
    names,
    v1::WorkerGroupSpec,
};

/// The place of a worker in its group.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerPlace {
    /// The index of the replica.
    pub(crate) replica: Option<usize>,
    /// The name of the replica and the index of the host, in a group with several hosts.
    pub(crate) host: Option<(String, usize)>,
}

/// The pod of a worker, as it is created.
pub(crate) fn worker_pod(
    context: &ClusterContext<'_>,
    group: &WorkerGroupSpec,
    place: &WorkerPlace,
) -> Value {
    let identity = PodIdentity {
        node_type: "worker",
        group: &group.group_name,
        prefix: format!("{}-{}", context.name(), group.group_name),
        labels: &group.labels,
    };
    let mut metadata = pod_metadata(context, &identity, &group.template);
    let labels = field(&mut metadata, "labels");
    if let Some(index) = place.replica {
        *field(labels, names::REPLICA_INDEX_LABEL) = json!(index.to_string());
    }
    if let Some((replica, host)) = &place.host {
        *field(labels, names::REPLICA_NAME_LABEL) = json!(replica);
        *field(labels, names::HOST_INDEX_LABEL) = json!(host.to_string());
    }
    if let Some(name) = worker_name(context, group, place, &metadata) {
        metadata["name"] = json!(name);
    }
    let spec = pod_spec(context, group, keeps_command(&metadata));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// The name of a worker, which follows from its place; none without indexes, since pods without them have no place.
fn worker_name(
    context: &ClusterContext<'_>,
    group: &WorkerGroupSpec,
    place: &WorkerPlace,
    metadata: &Value,
) -> Option<String> {
    let index = place.replica?.to_string();
    let host = place.host.as_ref().map(|(_, host)| host.to_string()).unwrap_or_default();
    let known = context.group_pods(&group.group_name).filter(|pod| {
        label(pod, names::REPLICA_INDEX_LABEL) == index
            && label(pod, names::HOST_INDEX_LABEL) == host
    });
    let mut known: Vec<String> = known.map(|pod| name(pod).to_owned()).collect();
    let place = format!("{}/{index}/{host}{}", group.group_name, context.edition());
    let given_up = group.scale_strategy.iter().flat_map(|strategy| &strategy.workers_to_delete);
    let given_up: Vec<&String> = given_up.collect();
    loop {
        let name = pod_name(context, metadata, &place, &known);
        // A pod of this name would be deleted at once.
        if !given_up.contains(&&name) {
            return Some(name);
        }
        known.push(name);
    }
}

fn pod_spec(context: &ClusterContext<'_>, group: &WorkerGroupSpec, keeps_command: bool) -> Value {
    let mut spec = group.template["spec"].clone();
    add_pod_token(context, &mut spec);
    // A template may wait by itself.
    if context.settings.inject_init_container
        && named(&spec["initContainers"], names::WAIT_CONTAINER).is_none()
    {
        let waiting = wait_for_head(context, &spec["containers"][0]);
        list(&mut spec, "initContainers").push(waiting);
    }
    // After the waiting container was added, which needs the address as well.
    for container in list_if_any(&mut spec, "initContainers") {
        append_head_address(context, container);
    }
    if let Some(container) = list(&mut spec, "containers").first_mut() {
        append_head_address(context, container);
    }
    let node = RayNode {
        is_head: false,
        params: &group.ray_start_params,
        resources: &group.resources,
        labels: &group.labels,
        keeps_command,
    };
    ray_container::complete(context, node, &mut spec);
    set_restart_policy(context, &mut spec);
    workload_slice::gate(&group.template, &mut spec);
    list(&mut spec, "containers").extend(context.settings.pods.worker_sidecars.iter().cloned());
    spec
}

/// A container that ends when the head answers. It has what Ray's container has to reach the head.
fn wait_for_head(context: &ClusterContext<'_>, container: &Value) -> Value {
    let address = format!("{}:{}", context.head_address(), context.gcs_port());
    let script = format!(
        "waited=0\n\
         until ray health-check --address {address} >/dev/null 2>&1; do\n\
         \x20 echo \"waiting for the head at {address}: $waited s\"\n\
         \x20 waited=$((waited + 5))\n\
         \x20 sleep 5\n\
         done\n\
         echo \"the head at {address} answers\"\n"
    );
    let mut waiting = json!({
        "name": names::WAIT_CONTAINER,
        "image": container["image"],
        "command": shell(context),
        "args": [script],
        "resources": {
            "limits": {"cpu": "200m", "memory": "256Mi"},
            "requests": {"cpu": "200m", "memory": "256Mi"},
        },
    });
    for name in ["env", "imagePullPolicy", "securityContext", "volumeMounts"] {
        if !container[name].is_null() {
            waiting[name] = container[name].clone();
        }
    }
    waiting
}
