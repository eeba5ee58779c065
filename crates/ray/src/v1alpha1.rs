//! `ray.io/v1alpha1`: still served and never stored.
//!
//! Its fields are those of v1 without the ones that came later, so its schemas are derived from those of v1. Objects are not
//! converted; they decode as v1. Templates are not checked in this version.

use serde_json::{Value, json};

/// Fields of the spec of a cluster that v1alpha1 does not have.
const CLUSTER_SPEC: &[&str] = &[
    "authOptions",
    "autoscalerOptions/args",
    "autoscalerOptions/command",
    "autoscalerOptions/version",
    "gcsFaultToleranceOptions",
    "headGroupSpec/ingressOptions",
    "headGroupSpec/labels",
    "headGroupSpec/resources",
    "historyServerOptions",
    "managedBy",
    "networkPolicy",
    "tlsOptions",
    "upgradeStrategy",
    "workerGroupSpecs/[]/idleTimeoutSeconds",
    "workerGroupSpecs/[]/labels",
    "workerGroupSpecs/[]/numOfHosts",
    "workerGroupSpecs/[]/priority",
    "workerGroupSpecs/[]/resources",
    "workerGroupSpecs/[]/suspend",
];

/// Fields of the status of a cluster that v1alpha1 does not have.
const CLUSTER_STATUS: &[&str] =
    &["conditions", "head/podName", "head/serviceName", "stateTransitionTimes"];

/// Fields of the spec of a RayJob that v1alpha1 does not have.
const JOB_SPEC: &[&str] = &[
    "activeDeadlineSeconds",
    "backoffLimit",
    "deletionStrategy",
    "managedBy",
    "preRunningDeadlineSeconds",
    "submissionMode",
    "submitterConfig",
];

/// Fields of the status of a RayJob that v1alpha1 does not have.
const JOB_STATUS: &[&str] =
    &["failed", "jobStatusCheckFailureStartTime", "rayJobInfo", "reason", "succeeded"];

/// Fields of the spec of a RayService that v1alpha1 does not have.
const SERVICE_SPEC: &[&str] = &[
    "excludeHeadPodFromServeSvc",
    "managedBy",
    "rayClusterDeletionDelaySeconds",
    "suspend",
    "upgradeStrategy",
];

/// Fields of the status of a RayService that v1alpha1 does not have.
const SERVICE_STATUS: &[&str] = &["conditions", "numServeEndpoints"];

/// Fields of the status of one cluster of a RayService that v1alpha1 does not have.
const ACTIVE_STATUS: &[&str] =
    &["lastTrafficMigratedTime", "targetCapacity", "trafficRoutedPercent"];

/// The schema of a RayCluster's spec.
pub(crate) fn cluster_spec(mut schema: Value) -> Value {
    without(&mut schema, CLUSTER_SPEC);
    for group in ["headGroupSpec", "workerGroupSpecs/[]"] {
        if let Some(group) = at(&mut schema, group) {
            require(group, "rayStartParams");
            if let Some(template) = at(group, "template") {
                *template = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            }
        }
    }
    schema
}

/// The schema of a RayCluster's status.
pub(crate) fn cluster_status(mut schema: Value) -> Value {
    without(&mut schema, CLUSTER_STATUS);
    schema
}

/// The schema of a RayJob's spec.
pub(crate) fn job_spec(mut schema: Value) -> Value {
    without(&mut schema, JOB_SPEC);
    require(&mut schema, "entrypoint");
    inner(&mut schema, "rayClusterSpec", cluster_spec);
    if let Some(template) = at(&mut schema, "submitterPodTemplate") {
        *template = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    schema
}

/// The schema of a RayJob's status.
pub(crate) fn job_status(mut schema: Value) -> Value {
    without(&mut schema, JOB_STATUS);
    inner(&mut schema, "rayClusterStatus", cluster_status);
    schema
}

/// The schema of a RayService's spec.
pub(crate) fn service_spec(mut schema: Value) -> Value {
    without(&mut schema, SERVICE_SPEC);
    // The one required field of v1 is optional here.
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("required");
    }
    inner(&mut schema, "rayClusterConfig", cluster_spec);
    schema
}

/// The schema of a RayService's status.
pub(crate) fn service_status(mut schema: Value) -> Value {
    without(&mut schema, SERVICE_STATUS);
    for name in ["activeServiceStatus", "pendingServiceStatus"] {
        inner(&mut schema, name, |mut status| {
            without(&mut status, ACTIVE_STATUS);
            inner(&mut status, "rayClusterStatus", cluster_status);
            for path in
                ["applicationStatuses/{}", "applicationStatuses/{}/serveDeploymentStatuses/{}"]
            {
                if let Some(properties) =
                    at(&mut status, path).and_then(|one| one.get_mut("properties"))
                {
                    properties["healthLastUpdateTime"] =
                        json!({"type": "string", "format": "date-time"});
                }
            }
            status
        });
    }
    schema
}

/// The schema of a field: `[]` stands for the items of a list, `{}` for the values of a map.
fn at<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('/').try_fold(schema, |schema, name| match name {
        "[]" => schema.get_mut("items"),
        "{}" => schema.get_mut("additionalProperties"),
        name => schema.get_mut("properties")?.get_mut(name),
    })
}

fn inner(schema: &mut Value, path: &str, change: impl Fn(Value) -> Value) {
    if let Some(field) = at(schema, path) {
        *field = change(field.take());
    }
}

fn without(schema: &mut Value, paths: &[&str]) {
    for path in paths {
        let (parent, name) = match path.rsplit_once('/') {
            Some((parent, name)) => (at(schema, parent), name),
            None => (Some(&mut *schema), *path),
        };
        let properties = parent.and_then(|parent| parent.get_mut("properties"));
        if let Some(properties) = properties.and_then(Value::as_object_mut) {
            properties.remove(name);
        }
    }
}

fn require(schema: &mut Value, name: &str) {
    if schema["required"].is_null() {
        schema["required"] = json!([]);
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.push(name.into());
    }
}
