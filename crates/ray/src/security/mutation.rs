//! What is added to a RayCluster. Items are added or replaced by their names, so that a second mutation changes nothing.

use serde_json::{Value, json};

use super::{
    config::SecurityConfig,
    containers::{
        head_create_cert, proxy, proxy_volume, tls_mounts, tls_variables, tls_volumes,
        worker_create_cert,
    },
    object_names::ObjectNames,
};
use crate::{
    json::{annotation, field, list, list_if_any, name},
    names,
};

/// The value of the annotation: the release of CodeFlare with these names.
const VERSION: &str = "v1.16.0";

/// Adds the proxy and the certificates to a RayCluster.
///
/// A cluster without a name is left alone: names of its objects are parts of its pods. Admission refuses it.
pub fn mutate(cluster: &mut Value, config: &SecurityConfig) {
    if name(cluster).is_empty() || !cluster["spec"].is_object() {
        return;
    }
    add_version(cluster);
    // A copy with the metadata: the spec is changed while the names are read.
    let named = json!({"metadata": cluster["metadata"], "spec": {
        "headGroupSpec": {"headService": cluster["spec"]["headGroupSpec"]["headService"]},
    }});
    let names = ObjectNames::of(&named);
    let spec = field(cluster, "spec");
    let head = pod_spec(field(spec, "headGroupSpec"));
    if config.oauth {
        add_proxy(head, &names, config);
    }
    if config.mtls {
        add_certificate(head, &names, head_create_cert(&named, &names, config));
        for group in list_if_any(spec, "workerGroupSpecs") {
            add_certificate(pod_spec(group), &names, worker_create_cert(config));
        }
    }
}

/// Pods of a cluster that runs already refer to objects with bare names, so only a new cluster gets the annotation.
fn add_version(cluster: &mut Value) {
    let is_new = cluster["status"].as_object().is_none_or(serde_json::Map::is_empty);
    if is_new && annotation(cluster, names::SECURITY_VERSION).is_empty() {
        let annotations = field(field(cluster, "metadata"), "annotations");
        *field(annotations, names::SECURITY_VERSION) = json!(VERSION);
    }
}

fn pod_spec(group: &mut Value) -> &mut Value {
    field(field(group, "template"), "spec")
}

fn add_proxy(head: &mut Value, names: &ObjectNames<'_>, config: &SecurityConfig) {
    upsert(list(head, "containers"), proxy(names, config));
    upsert(list(head, "volumes"), proxy_volume(names));
    *field(head, "serviceAccountName") = json!(names.proxy_account());
}

fn add_certificate(pod: &mut Value, names: &ObjectNames<'_>, create_cert: Value) {
    if let Some(ray) = list_if_any(pod, "containers").first_mut() {
        let env = list(ray, "env");
        tls_variables().into_iter().for_each(|variable| upsert(env, variable));
        let mounts = list(ray, "volumeMounts");
        tls_mounts().into_iter().for_each(|mount| upsert(mounts, mount));
    }
    let volumes = list(pod, "volumes");
    tls_volumes(names).into_iter().for_each(|volume| upsert(volumes, volume));
    upsert(list(pod, "initContainers"), create_cert);
}

/// Replaces the item of the same name, or adds one. Further items of the name go.
fn upsert(items: &mut Vec<Value>, wanted: Value) {
    let is_same = |item: &Value| item["name"] == wanted["name"];
    let Some(at) = items.iter().position(is_same) else {
        items.push(wanted);
        return;
    };
    let mut index = 0;
    items.retain(|item| {
        index += 1;
        index <= at + 1 || !is_same(item)
    });
    if let Some(item) = items.get_mut(at) {
        *item = wanted;
    }
}
