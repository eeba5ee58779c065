//! What the controller of RayServices refuses.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use std::time::Duration;

use crds::go_duration;
use serde_json::Value;

use crate::{
    cluster::{check_cluster_spec, check_name, check_no_kubernetes_token},
    json::{annotation, name},
    names::INCREMENTAL_UPGRADE as INCREMENTAL,
    settings::OperatorSettings,
    v1::{ClusterUpgradeOptions, RayServiceSpec},
};

/// The most characters of the name of a RayService: names of its clusters are longer.
const LONGEST_NAME: usize = 47;

/// The annotation with the time that a RayService has for its first cluster.
const INITIALIZING_TIMEOUT: &str = "ray.io/initializing-timeout";

/// Why a RayService is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidService {
    /// For programs.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
}

/// Checks metadata and spec of a RayService.
///
/// # Errors
/// The first rule that does not hold.
pub fn check_service(
    service: &Value,
    spec: &RayServiceSpec,
    settings: &OperatorSettings,
) -> Result<(), InvalidService> {
    check_name("RayService", name(service), LONGEST_NAME)
        .and_then(|()| check_timeout(service))
        .map_err(|why| InvalidService {
            reason: "InvalidRayServiceMetadata",
            message: format!("The RayService metadata is invalid: {why}"),
        })?;
    check_spec(service, spec, settings).map_err(|why| InvalidService {
        reason: "InvalidRayServiceSpec",
        message: format!("The RayService spec is invalid: {why}"),
    })
}

/// Checks the annotation with the time for the first cluster.
pub(crate) fn check_timeout(service: &Value) -> Result<(), String> {
    let timeout = annotation(service, INITIALIZING_TIMEOUT);
    if timeout.is_empty() {
        return Ok(());
    }
    if timeout_of(service).is_some() {
        return Ok(());
    }
    Err(format!(
        "RayService annotations is invalid: annotation {INITIALIZING_TIMEOUT} has invalid format: {timeout}. Expected Go duration format (e.g., '5m', '1h') or positive integer seconds"
    ))
}

/// The time that a RayService has for its first cluster, if it is limited.
pub(super) fn timeout_of(service: &Value) -> Option<Duration> {
    let timeout = annotation(service, INITIALIZING_TIMEOUT);
    // A number alone is no Go duration; it means seconds.
    let timeout = match timeout.parse::<i64>() {
        Ok(seconds) => Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
        Err(_) => go_duration::parse(timeout),
    };
    timeout.filter(|timeout| !timeout.is_zero())
}

fn check_spec(
    service: &Value,
    spec: &RayServiceSpec,
    settings: &OperatorSettings,
) -> Result<(), String> {
    let cluster = &spec.ray_cluster_config;
    check_no_kubernetes_token("RayService", cluster)?;
    check_cluster_spec(service, cluster, settings)?;
    let head_service = cluster.head_group_spec.head_service.as_ref();
    if head_service.is_some_and(|service| !name(service).is_empty()) {
        // Each cluster of an upgrade needs a Service of its own.
        return Err(
            "spec.rayClusterConfig.headGroupSpec.headService.metadata.name should not be set"
                .to_owned(),
        );
    }
    if spec.ray_cluster_deletion_delay_seconds.is_some_and(|delay| delay < 0) {
        return Err("rayClusterDeletionDelaySeconds must not be negative".to_owned());
    }
    let Some(upgrade) = &spec.upgrade_strategy else { return Ok(()) };
    match upgrade.r#type.as_deref() {
        None | Some("NewCluster" | "None") => Ok(()),
        Some(INCREMENTAL) if !settings.gates.incremental_upgrade => Ok(()),
        Some(INCREMENTAL) => {
            if cluster.enable_in_tree_autoscaling != Some(true) {
                return Err(format!("Ray Autoscaler is required for {INCREMENTAL}"));
            }
            check_steps(upgrade.cluster_upgrade_options.as_ref())
        }
        Some(other) => Err(format!(
            "upgradeStrategy.type {other:?} is unknown: NewCluster, {INCREMENTAL} and None are known"
        )),
    }
}

fn check_steps(options: Option<&ClusterUpgradeOptions>) -> Result<(), String> {
    let Some(options) = options else {
        return Err(format!("clusterUpgradeOptions are required for {INCREMENTAL}"));
    };
    let surge = options.max_surge_percent.unwrap_or(100);
    if !(0..=100).contains(&surge) {
        return Err(format!("maxSurgePercent must be between 0 and 100, not {surge}"));
    }
    let step = options.step_size_percent.unwrap_or(0);
    if !(1..=surge).contains(&step) {
        return Err(format!(
            "stepSizePercent must be between 1 and maxSurgePercent ({surge}), not {step}"
        ));
    }
    let interval = options.interval_seconds.unwrap_or(0);
    if interval <= 0 {
        return Err(format!("intervalSeconds must be greater than 0, not {interval}"));
    }
    if options.gateway_class_name.is_empty() {
        return Err(format!("gatewayClassName is required for {INCREMENTAL}"));
    }
    Ok(())
}
