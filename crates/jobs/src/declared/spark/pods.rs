//! The pod template of a role. It has the fields that the operator's webhook copies into a pod; memory beside the heap and `cores`
//! are in no Workload of upstream, whose counts are followed.

use crds::{decode::from_value, pod::PodTemplate};
use serde_json::{Value, json};

use super::{
    Role,
    memory::{self, MemoryReading},
};

/// Volumes that Spark itself mounts.
const LOCAL_DIRECTORIES: &str = "spark-local-dir-";

/// Fields of a role that are fields of its pods.
const OF_PODS: [&str; 3] = ["affinity", "nodeSelector", "tolerations"];

/// The template of a role.
///
/// # Errors
/// If a field does not decode, or an amount is none.
pub(super) fn template(
    application: &Value,
    role: Role,
    memory: MemoryReading,
) -> Result<PodTemplate, String> {
    let fields = &application[role.name()];
    let mut spec = json!({});
    for field in OF_PODS {
        copy(&fields[field], &mut spec, field);
    }
    // A driver and executors may have one node selector in common, and none of their own.
    if fields["nodeSelector"].is_null() {
        copy(&application["nodeSelector"], &mut spec, "nodeSelector");
    }
    copy(&fields["priorityClassName"], &mut spec, "priorityClassName");
    let mut container = json!({ "name": role.container(), "resources": resources(fields, memory) });
    let (volumes, mounts) = volumes(application, fields);
    if !volumes.is_empty() {
        spec["volumes"] = Value::Array(volumes);
        container["volumeMounts"] = Value::Array(mounts);
    }
    let mut containers = vec![container];
    add_others(&fields["sidecars"], &mut containers);
    let mut first = Vec::new();
    add_others(&fields["initContainers"], &mut first);
    if !first.is_empty() {
        spec["initContainers"] = Value::Array(first);
    }
    spec["containers"] = Value::Array(containers);
    let template = json!({ "metadata": metadata(fields), "spec": spec });
    from_value(&template).map_err(|error| error.to_string())
}

fn copy(from: &Value, into: &mut Value, field: &str) {
    if !from.is_null() && from != "" {
        into[field] = from.clone();
    }
}

/// Labels and annotations of the template, and those of the role, which come last.
fn metadata(fields: &Value) -> Value {
    let mut metadata = json!({});
    for map in ["labels", "annotations"] {
        let sources = [&fields["template"]["metadata"][map], &fields[map]];
        for (key, value) in sources.into_iter().filter_map(Value::as_object).flatten() {
            metadata[map][key.as_str()] = value.clone();
        }
    }
    metadata
}

fn resources(fields: &Value, of_heap: MemoryReading) -> Value {
    let mut resources = json!({});
    let text = |field: &str| fields[field].as_str().map(str::to_owned);
    let memory = |field: &str, read: MemoryReading| fields[field].as_str().map(read);
    for (amounts, resource, amount) in [
        ("requests", "cpu", text("coreRequest")),
        ("limits", "cpu", text("coreLimit")),
        ("requests", "memory", memory("memory", of_heap)),
        ("limits", "memory", memory("memoryLimit", memory::as_quantity)),
    ] {
        if let Some(amount) = amount {
            resources[amounts][resource] = json!(amount);
        }
    }
    let gpu = &fields["gpu"];
    if let (Some(name), Some(n @ 1..)) = (gpu["name"].as_str(), gpu["quantity"].as_i64())
        && !name.is_empty()
    {
        resources["limits"][name] = json!(n.to_string());
    }
    resources
}

/// Volumes of the application that the role mounts, and the mounts.
fn volumes(application: &Value, fields: &Value) -> (Vec<Value>, Vec<Value>) {
    let (mut volumes, mut mounts): (Vec<Value>, Vec<Value>) = Default::default();
    let defined = application["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    for mount in fields["volumeMounts"].as_array().into_iter().flatten() {
        let is_local =
            mount["name"].as_str().is_some_and(|name| name.starts_with(LOCAL_DIRECTORIES));
        let volume = defined.iter().rev().find(|volume| volume["name"] == mount["name"]);
        let Some(volume) = volume.filter(|_| !is_local) else { continue };
        if !volumes.contains(volume) {
            volumes.push(volume.clone());
        }
        mounts.push(mount.clone());
    }
    (volumes, mounts)
}

/// Adds containers. One with name and image of another is there already.
fn add_others(others: &Value, containers: &mut Vec<Value>) {
    for other in others.as_array().into_iter().flatten() {
        let is_same = |one: &Value| one["name"] == other["name"] && one["image"] == other["image"];
        if !containers.iter().any(is_same) {
            containers.push(other.clone());
        }
    }
}
