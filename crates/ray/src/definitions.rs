//! Names, columns and versions of the kinds of `ray.io`.

use crds::crd::{Column, Conversion, Definition, VersionDefinition, structural_schema};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::{v1, v1alpha1};

const fn column(name: &'static str, r#type: &'static str, path: &'static str) -> Column {
    Column { name, r#type, path, priority: 0 }
}

const fn wide(name: &'static str, r#type: &'static str, path: &'static str) -> Column {
    Column { name, r#type, path, priority: 1 }
}

const AGE: Column = column("age", "date", ".metadata.creationTimestamp");

const RAY_CLUSTER: &[Column] = &[
    column("desired workers", "integer", ".status.desiredWorkerReplicas"),
    column("available workers", "integer", ".status.availableWorkerReplicas"),
    column("cpus", "string", ".status.desiredCPU"),
    column("memory", "string", ".status.desiredMemory"),
    column("gpus", "string", ".status.desiredGPU"),
    wide("tpus", "string", ".status.desiredTPU"),
    column("status", "string", ".status.state"),
    AGE,
    wide("head pod IP", "string", ".status.head.podIP"),
    wide("head service IP", "string", ".status.head.serviceIP"),
];
const RAY_JOB: &[Column] = &[
    column("job status", "string", ".status.jobStatus"),
    column("deployment status", "string", ".status.jobDeploymentStatus"),
    column("ray cluster name", "string", ".status.rayClusterName"),
    column("start time", "string", ".status.startTime"),
    column("end time", "string", ".status.endTime"),
    AGE,
];
const RAY_SERVICE: &[Column] = &[
    column("service status", "string", ".status.serviceStatus"),
    column("num serve endpoints", "string", ".status.numServeEndpoints"),
];
const RAY_CRON_JOB: &[Column] = &[
    column("schedule", "string", ".spec.schedule"),
    column("timezone", "string", ".spec.timeZone"),
    column("last schedule", "date", ".status.lastScheduleTime"),
    AGE,
    column("suspend", "boolean", ".spec.suspend"),
];

/// All kinds of `ray.io`.
#[must_use]
pub fn all() -> Vec<Definition> {
    let cluster = version::<v1::RayClusterSpec, v1::RayClusterStatus>(RAY_CLUSTER);
    let job = version::<v1::RayJobSpec, v1::RayJobStatus>(RAY_JOB);
    let service = version::<v1::RayServiceSpec, v1::RayServiceStatuses>(RAY_SERVICE);
    let cron_job = version::<v1::RayCronJobSpec, v1::RayCronJobStatus>(RAY_CRON_JOB);
    let old_cluster = old(&cluster, RAY_CLUSTER, v1alpha1::cluster_spec, v1alpha1::cluster_status);
    let old_job = old(&job, &[], v1alpha1::job_spec, v1alpha1::job_status);
    let old_service = old(&service, &[], v1alpha1::service_spec, v1alpha1::service_status);
    vec![
        kind(["RayCluster", "rayclusters", "raycluster"], vec![cluster, old_cluster]),
        kind(["RayCronJob", "raycronjobs", "raycronjob"], vec![cron_job]),
        kind(["RayJob", "rayjobs", "rayjob"], vec![job, old_job]),
        kind(["RayService", "rayservices", "rayservice"], vec![service, old_service]),
    ]
}

fn kind(
    [kind, plural, singular]: [&'static str; 3],
    versions: Vec<VersionDefinition>,
) -> Definition {
    Definition {
        group: "ray.io",
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &["all"],
        namespaced: true,
        conversion: Conversion::None,
        versions,
    }
}

fn version<Spec: JsonSchema, Status: JsonSchema>(columns: &'static [Column]) -> VersionDefinition {
    VersionDefinition {
        name: "v1",
        storage: true,
        deprecated: false,
        deprecation_warning: None,
        status: true,
        columns,
        selectable: &[],
        schema: object(&structural_schema::<Spec>(), &structural_schema::<Status>()),
    }
}

/// The version v1alpha1 of a kind.
fn old(
    new: &VersionDefinition,
    columns: &'static [Column],
    spec: fn(Value) -> Value,
    status: fn(Value) -> Value,
) -> VersionDefinition {
    let properties = &new.schema["properties"];
    VersionDefinition {
        name: "v1alpha1",
        storage: false,
        deprecated: true,
        columns,
        schema: object(&spec(properties["spec"].clone()), &status(properties["status"].clone())),
        ..new.clone()
    }
}

fn object(spec: &Value, status: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    })
}
