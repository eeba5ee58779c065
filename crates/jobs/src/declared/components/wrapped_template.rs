//! The pod template that a Workload has of a wrapped object: the fields that admission reads, with the defaults of the API
//! (docs/reference/appwrapper.md §3).
//!
//! The API sets no defaults in an object that stands in a field of another one. A worker with upstream's manager compares
//! containers with these defaults and without any other field; with others it finds the copy out of sync.

use serde_json::{Map, Value, json};

/// Fields of a container that are kept.
const OF_CONTAINERS: &[&str] = &["name", "image", "command", "args", "securityContext"];

/// Amounts of a container that are kept. Claims are not.
const OF_RESOURCES: &[&str] = &["requests", "limits"];

/// Fields of a pod that are kept.
const OF_PODS: &[&str] = &[
    "nodeName",
    "nodeSelector",
    "affinity",
    "tolerations",
    "priorityClassName",
    "overhead",
    "topologySpreadConstraints",
];

/// The template of what stands at the path of a pod set: a pod template, or a pod.
pub(super) fn wrapped_template(found: &Value) -> Value {
    let mut spec = kept(&found["spec"], OF_PODS);
    for list in ["initContainers", "containers"] {
        if let Some(containers) = found["spec"][list].as_array() {
            spec.insert(list.to_owned(), containers.iter().map(container).collect());
        }
    }
    for (field, default) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("terminationGracePeriodSeconds", json!(30)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
    ] {
        insert(&mut spec, field, &found["spec"][field], default);
    }
    // The metadata of a pod also names it.
    json!({ "metadata": kept(&found["metadata"], &["labels", "annotations"]), "spec": spec })
}

fn container(container: &Value) -> Value {
    let mut kept_fields = kept(container, OF_CONTAINERS);
    let amounts = kept(&container["resources"], OF_RESOURCES);
    kept_fields.insert("resources".to_owned(), Value::Object(amounts));
    let image = container["image"].as_str().unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    for (field, default) in [
        ("imagePullPolicy", json!(policy)),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
    ] {
        insert(&mut kept_fields, field, &container[field], default);
    }
    Value::Object(kept_fields)
}

fn kept(object: &Value, fields: &[&str]) -> Map<String, Value> {
    let present = fields.iter().filter(|field| !object[**field].is_null());
    present.map(|field| ((*field).to_owned(), object[*field].clone())).collect()
}

fn insert(into: &mut Map<String, Value>, field: &str, value: &Value, default: Value) {
    let is_unset = value.is_null() || value.as_str().is_some_and(str::is_empty);
    into.insert(field.to_owned(), if is_unset { default } else { value.clone() });
}

/// Whether an image has the tag `latest`, which is the tag of an image without tag and digest.
fn is_latest(image: &str) -> bool {
    let (named, digest) = image.split_once('@').map_or((image, None), |(a, b)| (a, Some(b)));
    // Before the last slash a colon begins a port.
    let last = named.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_tag_and_digest_is_the_latest() {
        for (image, latest) in [
            ("img", true),
            ("host:5000/img", true),
            ("host:5000/img:latest", true),
            ("img:latest@sha256:00", true),
            ("img:1", false),
            ("host:5000/img:1", false),
            ("img@sha256:00", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }

    #[test]
    fn set_fields_stay_and_others_get_defaults() {
        let found = json!({
            "metadata": { "name": "p", "labels": { "a": "b" } },
            "spec": {
                "restartPolicy": "", "dnsPolicy": "Default", "volumes": [{ "name": "v" }],
                "containers": [{
                    "name": "c", "image": "i", "env": [], "imagePullPolicy": "Never",
                    "resources": { "claims": [{ "name": "r" }], "limits": { "cpu": "1" } },
                }],
            },
        });
        let template = wrapped_template(&found);
        assert_eq!(template["metadata"], json!({ "labels": { "a": "b" } }));
        let expected = json!({
            "restartPolicy": "Always", "dnsPolicy": "Default", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30, "preemptionPolicy": "PreemptLowerPriority",
            "containers": [{
                "name": "c", "image": "i", "imagePullPolicy": "Never", "resources": { "limits": { "cpu": "1" } },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
        });
        assert_eq!(template["spec"], expected);
    }
}
