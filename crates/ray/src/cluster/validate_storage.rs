//! Rules for the storage of the head's state.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules", §7.

use serde_json::Value;

use super::{context::ClusterContext, gcs_storage};
use crate::{
    json::{annotation, items, named},
    names,
    v1::GcsFaultToleranceOptions,
};

/// Options, annotations, parameters and variables must not contradict each other.
pub(crate) fn check_storage(context: &ClusterContext<'_>) -> Result<(), String> {
    let head = &context.spec.head_group_spec;
    let has_param =
        |name: &str| head.ray_start_params.get(name).is_some_and(|value| !value.is_empty());
    let has_variable = |name: &str| context.head_variable(name).is_some();
    let switch = annotation(context.cluster, names::FT_ENABLED);
    let options = context.spec.gcs_fault_tolerance_options.as_ref();
    // Any value of the annotation counts, also `false`.
    if options.is_some() && !switch.is_empty() {
        return Err(format!(
            "{} annotation and GcsFaultToleranceOptions are both set. Please use only GcsFaultToleranceOptions to configure GCS fault tolerance",
            names::FT_ENABLED
        ));
    }
    if !context.is_fault_tolerant() && has_variable("RAY_REDIS_ADDRESS") {
        return Err("RAY_REDIS_ADDRESS is set which implicitly enables GCS fault tolerance, but GcsFaultToleranceOptions is not set. Please set GcsFaultToleranceOptions to enable GCS fault tolerance".to_owned());
    }
    if let Some(options) = options {
        check_options(context, options)?;
    }
    if has_param("redis-username") || has_variable("REDIS_USERNAME") {
        Err("cannot set redis username in rayStartParams or environment variables - use GcsFaultToleranceOptions.RedisUsername instead".to_owned())
    } else {
        Ok(())
    }
}

/// What the options replace must not be set beside them.
fn check_options(
    context: &ClusterContext<'_>,
    options: &GcsFaultToleranceOptions,
) -> Result<(), String> {
    let params = &context.spec.head_group_spec.ray_start_params;
    if params.get("redis-password").is_some_and(|it| !it.is_empty()) {
        return Err("cannot set `redis-password` in rayStartParams when GcsFaultToleranceOptions is enabled - use GcsFaultToleranceOptions.RedisPassword instead".to_owned());
    }
    for (variable, field) in
        [("REDIS_PASSWORD", "RedisPassword"), ("RAY_REDIS_ADDRESS", "RedisAddress")]
    {
        if context.head_variable(variable).is_some() {
            return Err(format!(
                "cannot set `{variable}` env var in head Pod when GcsFaultToleranceOptions is enabled - use GcsFaultToleranceOptions.{field} instead"
            ));
        }
    }
    if !annotation(context.cluster, names::STORAGE_NAMESPACE).is_empty() {
        return Err(format!(
            "cannot set `{}` annotation when GcsFaultToleranceOptions is enabled - use GcsFaultToleranceOptions.ExternalStorageNamespace instead",
            names::STORAGE_NAMESPACE
        ));
    }
    if context.has_embedded_storage() {
        return check_embedded(context, options);
    }
    // It would be ignored, and the state lost that its user takes for stored.
    match options.storage {
        Some(_) => Err("cannot set GcsFaultToleranceOptions.Storage when backend is 'redis' - it only applies to the 'rocksdb' backend".to_owned()),
        None => Ok(()),
    }
}

fn check_embedded(
    context: &ClusterContext<'_>,
    options: &GcsFaultToleranceOptions,
) -> Result<(), String> {
    if !context.settings.gates.embedded_storage {
        return Err("the embedded RocksDB GCS fault tolerance backend (GcsFaultToleranceOptions.Backend: 'rocksdb') requires the GCSFaultToleranceEmbeddedStorage feature gate to be enabled".to_owned());
    }
    for (field, is_set) in [
        ("RedisAddress", !options.redis_address.is_empty()),
        ("RedisUsername", options.redis_username.is_some()),
        ("RedisPassword", options.redis_password.is_some()),
        ("ExternalStorageNamespace", !options.external_storage_namespace.is_empty()),
    ] {
        if is_set {
            return Err(format!(
                "cannot set GcsFaultToleranceOptions.{field} when backend is 'rocksdb'"
            ));
        }
    }
    let storage = options.storage.clone().unwrap_or_default();
    let is_described = storage.size.is_some()
        || storage.storage_class_name.is_some()
        || !storage.access_modes.is_empty();
    if !storage.claim_name.is_empty() && is_described {
        return Err("GcsFaultToleranceOptions.Storage.ClaimName is mutually exclusive with size, storageClassName, and accessModes".to_owned());
    }
    let variables = ["RAY_gcs_storage", "RAY_gcs_storage_path"];
    if variables.iter().any(|name| context.head_variable(name).is_some()) {
        return Err("cannot set `RAY_gcs_storage` or `RAY_gcs_storage_path` env var in head Pod when the embedded GCS FT backend is used - these are managed by KubeRay".to_owned());
    }
    let pod = &context.spec.head_group_spec.template["spec"];
    let is_reserved = |mount: &Value| {
        mount["name"] == gcs_storage::VOLUME || mount["mountPath"] == gcs_storage::PATH
    };
    if items(&pod["containers"][0]["volumeMounts"]).iter().any(is_reserved) {
        return Err(format!(
            "cannot set a volume mount named {:?} or mounted at {} in the head container when the embedded GCS FT backend is used - it is managed by KubeRay",
            gcs_storage::VOLUME,
            gcs_storage::PATH
        ));
    }
    if named(&pod["volumes"], gcs_storage::VOLUME).is_some() {
        return Err(format!(
            "cannot set a volume named {:?} in the head Pod when the embedded GCS FT backend is used - it is managed by KubeRay",
            gcs_storage::VOLUME
        ));
    }
    Ok(())
}
