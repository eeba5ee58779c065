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
    // A duration of zero is one without a unit as well; any other number alone means seconds.
    let positive = timeout.strip_prefix('-').unwrap_or(timeout);
    let problem = if go_duration::parse(positive).is_some() {
        format!("must be a positive duration, got: {timeout}")
    } else if timeout.parse::<i64>().is_ok() {
        format!("must be a positive integer (seconds), got: {timeout}")
    } else {
        format!(
            "has invalid format: {timeout}. Expected Go duration format (e.g., '5m', '1h') or positive integer seconds"
        )
    };
    Err(format!("RayService annotations is invalid: annotation {INITIALIZING_TIMEOUT} {problem}"))
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
    let upgrade = spec.upgrade_strategy.as_ref();
    let kind = upgrade.and_then(|upgrade| upgrade.r#type.as_deref());
    if let Some(other) = kind.filter(|kind| !["NewCluster", "None", INCREMENTAL].contains(kind)) {
        return Err(format!(
            "Spec.UpgradeStrategy.Type value {other} is invalid, valid options are {INCREMENTAL}, NewCluster, or None"
        ));
    }
    if let Some(delay) = spec.ray_cluster_deletion_delay_seconds.filter(|delay| *delay < 0) {
        return Err(format!(
            "Spec.RayClusterDeletionDelaySeconds should be a non-negative integer, got {delay}"
        ));
    }
    if kind != Some(INCREMENTAL) || !settings.gates.incremental_upgrade {
        return Ok(());
    }
    if cluster.enable_in_tree_autoscaling != Some(true) {
        return Err(format!("Ray Autoscaler is required for {INCREMENTAL}"));
    }
    check_steps(upgrade.and_then(|upgrade| upgrade.cluster_upgrade_options.as_ref()))
}

fn check_steps(options: Option<&ClusterUpgradeOptions>) -> Result<(), String> {
    let Some(options) = options else {
        return Err(format!("ClusterUpgradeOptions are required for {INCREMENTAL}"));
    };
    let percent = 0..=100;
    let surge = options.max_surge_percent.unwrap_or(100);
    if !percent.contains(&surge) {
        return Err("maxSurgePercent must be between 0 and 100".to_owned());
    }
    let Some(step) = options.step_size_percent.filter(|step| percent.contains(step)) else {
        return Err("stepSizePercent must be between 0 and 100".to_owned());
    };
    if step > surge {
        return Err("stepSizePercent must be less than or equal to maxSurgePercent".to_owned());
    }
    // The official operator accepts it, and the upgrade never moves any traffic.
    if step == 0 {
        return Err("stepSizePercent must be greater than 0".to_owned());
    }
    if options.interval_seconds.is_none_or(|interval| interval <= 0) {
        return Err("intervalSeconds must be greater than 0".to_owned());
    }
    if options.gateway_class_name.is_empty() {
        return Err(format!("gatewayClassName is required for {INCREMENTAL}"));
    }
    Ok(())
}
