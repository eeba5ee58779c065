//! The spec of a RayCluster.
//!
//! Pod templates and Services stay JSON: decisions patch single fields of them, and the others survive.

use std::collections::BTreeMap;

use crds::{
    quantity::Quantity,
    schema::{AnyObject, PodTemplateShape},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    rules,
    shapes::{
        EnvFromShape, EnvVarShape, EnvVarSourceShape, ResourcesShape, SecurityContextShape,
        VolumeMountShape,
    },
};

/// A Ray cluster: one head and groups of workers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["headGroupSpec"]))]
pub struct RayClusterSpec {
    /// Whether Ray's nodes ask for a token.
    pub auth_options: Option<AuthOptions>,
    /// The sidecar of the head that scales worker groups.
    pub autoscaler_options: Option<AutoscalerOptions>,
    /// Whether that sidecar is there.
    pub enable_in_tree_autoscaling: Option<bool>,
    /// Storage of the head's state.
    pub gcs_fault_tolerance_options: Option<GcsFaultToleranceOptions>,
    /// The head.
    pub head_group_spec: HeadGroupSpec,
    /// Annotations of the head's Service.
    pub head_service_annotations: BTreeMap<String, String>,
    /// Storage of what happened in the cluster.
    pub history_server_options: Option<HistoryServerOptions>,
    /// The controller of this object: the built-in one, or MultiKueue.
    #[schemars(extend("x-kubernetes-validations" = rules::MANAGED_BY))]
    pub managed_by: Option<String>,
    /// What Ray's pods may reach.
    #[schemars(with = "Option<AnyObject>")]
    pub network_policy: Option<Value>,
    /// The version of Ray in the images.
    pub ray_version: String,
    /// Whether all pods are removed.
    pub suspend: Option<bool>,
    /// Encryption between Ray's nodes.
    pub tls_options: Option<TlsOptions>,
    /// What happens to the pods after a change of this spec.
    pub upgrade_strategy: Option<RayClusterUpgradeStrategy>,
    /// The groups of workers.
    pub worker_group_specs: Vec<WorkerGroupSpec>,
}

/// Whether Ray's nodes ask for a token.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthOptions {
    /// Whether tokens of Kubernetes are accepted.
    #[serde(rename = "enableK8sTokenAuth")]
    pub enable_k8s_token_auth: Option<bool>,
    /// `disabled` or `token`.
    #[schemars(extend("enum" = ["disabled", "token"]))]
    pub mode: String,
    /// The Secret with the token.
    pub secret_name: Option<String>,
}

/// The sidecar of the head that scales worker groups.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscalerOptions {
    /// Arguments in place of the generated ones.
    pub args: Vec<String>,
    /// The command in place of the generated one.
    pub command: Vec<String>,
    /// Variables.
    #[schemars(with = "Vec<EnvVarShape>")]
    pub env: Vec<Value>,
    /// Sources of variables.
    #[schemars(with = "Vec<EnvFromShape>")]
    pub env_from: Vec<Value>,
    /// Seconds after which an idle worker is removed.
    pub idle_timeout_seconds: Option<i32>,
    /// The image, that of the head if unset.
    pub image: Option<String>,
    /// When the image is pulled.
    pub image_pull_policy: Option<String>,
    /// Requests and limits.
    #[schemars(with = "Option<ResourcesShape>")]
    pub resources: Option<Value>,
    /// The security context.
    #[schemars(with = "Option<SecurityContextShape>")]
    pub security_context: Option<Value>,
    /// How fast groups grow.
    #[schemars(extend("enum" = ["Default", "Aggressive", "Conservative"]))]
    pub upscaling_mode: Option<String>,
    /// The version of the autoscaler.
    #[schemars(extend("enum" = ["v1", "v2"]))]
    pub version: Option<String>,
    /// Mounts of volumes.
    #[schemars(with = "Vec<VolumeMountShape>")]
    pub volume_mounts: Vec<Value>,
}

/// Storage of the head's state.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GcsFaultToleranceOptions {
    /// `redis` or `rocksdb`.
    #[schemars(extend("enum" = ["redis", "rocksdb"], "x-kubernetes-validations" = rules::BACKEND))]
    pub backend: Option<String>,
    /// The prefix of the keys; the uid of the cluster if unset.
    pub external_storage_namespace: String,
    /// Where Redis is.
    pub redis_address: String,
    /// The password of Redis.
    pub redis_password: Option<RedisCredential>,
    /// The user of Redis.
    pub redis_username: Option<RedisCredential>,
    /// The volume of RocksDB.
    pub storage: Option<GcsStorage>,
}

/// A value, or where it comes from.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RedisCredential {
    /// The value.
    pub value: String,
    /// Where it comes from.
    #[schemars(with = "Option<EnvVarSourceShape>")]
    pub value_from: Option<Value>,
}

/// The volume of RocksDB.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GcsStorage {
    /// How the volume may be mounted.
    pub access_modes: Vec<String>,
    /// A claim that exists.
    pub claim_name: String,
    /// Whether the claim is removed with the cluster.
    #[schemars(extend("enum" = ["DeleteWithCluster", "Retain"]))]
    pub deletion_policy: String,
    /// The size of the volume.
    pub size: Option<Quantity>,
    /// The class of the volume.
    pub storage_class_name: Option<String>,
    /// A folder in the volume.
    pub sub_path: String,
}

/// The head of a cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["template"]))]
pub struct HeadGroupSpec {
    /// Whether there is an Ingress.
    pub enable_ingress: Option<bool>,
    /// The Service in place of the generated one.
    #[schemars(with = "Option<AnyObject>")]
    pub head_service: Option<Value>,
    /// The Ingress.
    pub ingress_options: Option<IngressOptions>,
    /// Labels of the pod and of the Ray node.
    pub labels: BTreeMap<String, String>,
    /// Parameters of `ray start`.
    pub ray_start_params: BTreeMap<String, String>,
    /// What Ray counts in place of the container's resources: `CPU`, `GPU`, `memory` and others.
    pub resources: BTreeMap<String, String>,
    /// The type of the head's Service.
    pub service_type: String,
    /// The pod.
    #[schemars(with = "PodTemplateShape")]
    pub template: Value,
}

/// The Ingress of a head.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressOptions {
    /// The host.
    pub host: Option<String>,
    /// The path, `/` if unset.
    pub path: Option<String>,
    /// How the path is compared.
    #[schemars(extend("enum" = ["Exact", "Prefix", "ImplementationSpecific"]))]
    pub path_type: Option<String>,
    /// Certificates.
    pub tls: Vec<IngressTls>,
}

/// A certificate of an Ingress.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTls {
    /// Hosts of the certificate.
    #[schemars(extend("x-list" = "atomic"))]
    pub hosts: Vec<String>,
    /// The Secret with the certificate.
    pub secret_name: Option<String>,
}

/// A group of equal workers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["groupName", "maxReplicas", "minReplicas", "template"]))]
pub struct WorkerGroupSpec {
    /// The name, unique in the cluster.
    pub group_name: String,
    /// Seconds after which the autoscaler removes an idle worker.
    pub idle_timeout_seconds: Option<i32>,
    /// Labels of the pods and of the Ray nodes.
    pub labels: BTreeMap<String, String>,
    /// The most replicas.
    #[schemars(extend("x-default" = 2_147_483_647))]
    pub max_replicas: Option<i32>,
    /// The fewest replicas.
    #[schemars(extend("x-default" = 0))]
    pub min_replicas: Option<i32>,
    /// Pods of a replica.
    #[schemars(extend("x-default" = 1))]
    pub num_of_hosts: Option<i32>,
    /// The order of groups for the autoscaler.
    #[schemars(extend("x-default" = 0))]
    pub priority: Option<i32>,
    /// Parameters of `ray start`.
    pub ray_start_params: BTreeMap<String, String>,
    /// The wanted replicas.
    #[schemars(extend("x-default" = 0))]
    pub replicas: Option<i32>,
    /// What Ray counts in place of the container's resources: `CPU`, `GPU`, `memory` and others.
    pub resources: BTreeMap<String, String>,
    /// Which workers go first.
    pub scale_strategy: Option<ScaleStrategy>,
    /// Whether all pods of the group are removed.
    pub suspend: Option<bool>,
    /// The pods.
    #[schemars(with = "PodTemplateShape")]
    pub template: Value,
}

/// Which workers go first.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleStrategy {
    /// Names of pods.
    pub workers_to_delete: Vec<String>,
}

/// Storage of what happened in the cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryServerOptions {
    /// The sidecar that collects.
    pub collector_options: Option<CollectorOptions>,
}

/// The sidecar that collects.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CollectorOptions {
    /// Variables.
    #[schemars(with = "Vec<EnvVarShape>")]
    pub env: Vec<Value>,
    /// The image.
    pub image: Option<String>,
    /// When the image is pulled.
    pub image_pull_policy: Option<String>,
    /// Requests and limits.
    #[schemars(with = "Option<ResourcesShape>")]
    pub resources: Option<Value>,
}

/// Encryption between Ray's nodes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsOptions {
    /// Whether it is on.
    pub enabled: Option<bool>,
}

/// What happens to the pods after a change of the spec.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RayClusterUpgradeStrategy {
    /// `Recreate` or `None`.
    #[schemars(extend("enum" = ["Recreate", "None"]))]
    pub r#type: Option<String>,
}
