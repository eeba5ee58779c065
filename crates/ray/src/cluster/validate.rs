//! What the controller refuses: a spec that passes the API server and cannot be run.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use std::collections::{BTreeMap, BTreeSet};

use crds::validation::labels::{key_problems, value_problems};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    cluster_children::ClusterChildren,
    context::{ClusterContext, Moment, Origin},
    group_size::MOST_PODS_PER_PASS,
    probes::version,
    validate_network_policy::check_network_policy,
    validate_storage::check_storage,
};
use crate::{
    json::{items, named, text},
    names,
    security::{INGRESS_REFUSED, enables_ingress},
    settings::OperatorSettings,
    v1::{RayClusterSpec, WorkerGroupSpec},
};

/// The most characters of the name of a RayCluster.
pub(crate) const LONGEST_NAME: usize = 53;

/// The variable that switches to the second autoscaler.
const AUTOSCALER_V2: &str = "RAY_enable_autoscaler_v2";

/// The reason and the message of an event.
pub(crate) struct InvalidCluster {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

type Checked = Result<(), String>;

/// Checks metadata and spec of a cluster.
pub(crate) fn check(context: &ClusterContext<'_>) -> Result<(), InvalidCluster> {
    let path = context.path(context.name());
    let invalid = |reason, what: &str, why: String| InvalidCluster {
        reason,
        message: format!("The RayCluster {what} is invalid {path}: {why}"),
    };
    // The webhook is optional, so the controller repeats its rules.
    check_name("RayCluster", context.name(), LONGEST_NAME)
        .map_err(|why| invalid("InvalidRayClusterMetadata", "metadata", why))?;
    check_spec(context).map_err(|why| invalid("InvalidRayClusterSpec", "spec", why))?;
    check_upgrade(context)
        .map_err(|why| invalid("InvalidRayClusterSpec", "UpgradeStrategy", why))?;
    check_exposure(context).map_err(|why| invalid("InvalidRayClusterSpec", "spec", why))
}

/// A secured cluster has no Ingress without authentication.
fn check_exposure(context: &ClusterContext<'_>) -> Checked {
    match context.settings.security.is_some() && enables_ingress(context.cluster) {
        true => Err(INGRESS_REFUSED.to_owned()),
        false => Ok(()),
    }
}

/// Checks the name of an object of this API.
pub(crate) fn check_name(kind: &str, name: &str, most: usize) -> Checked {
    if name.chars().count() > most {
        return Err(format!("{kind} name should be no more than {most} characters"));
    }
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(inner)
        && !name.ends_with('-');
    if is_label {
        return Ok(());
    }
    Err(format!(
        "{kind} name should be a valid DNS1035 label: [a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')]"
    ))
}

/// Checks the spec of the cluster that another object would make.
pub(crate) fn check_cluster_spec(
    owner: &Value,
    spec: &RayClusterSpec,
    settings: &OperatorSettings,
) -> Checked {
    let moment = Moment { now: Timestamp::UNIX_EPOCH, seed: [0; 32] };
    check_spec(&ClusterContext {
        cluster: owner,
        spec,
        children: &ClusterChildren::default(),
        settings,
        moment: &moment,
    })
}

fn check_spec(context: &ClusterContext<'_>) -> Checked {
    let spec = context.spec;
    let head = &spec.head_group_spec;
    check_containers("headGroupSpec", &head.template)?;
    check_group("Head", &head.ray_start_params, &head.resources, &head.labels)?;
    let mut seen = BTreeSet::new();
    for group in &spec.worker_group_specs {
        check_worker_group(context, group)?;
        // Pods belong to a group by its name: two groups would delete each other's pods.
        if !seen.insert(&group.group_name) {
            return Err(format!("worker group name {} is not unique", group.group_name));
        }
    }
    check_storage(context)?;
    check_autoscaler(context)?;
    check_token(context)?;
    check_gates(context)
}

fn check_containers(place: &str, template: &Value) -> Checked {
    if items(&template["spec"]["containers"]).is_empty() {
        return Err(format!("{place} should have at least one container"));
    }
    Ok(())
}

fn check_worker_group(context: &ClusterContext<'_>, group: &WorkerGroupSpec) -> Checked {
    let name = &group.group_name;
    check_containers("workerGroupSpec", &group.template)?;
    if name == names::HEAD_GROUP {
        // Pods of such a group could not be told from the head.
        return Err(format!("worker group name {name} is the name of the group of the head"));
    }
    if !context.is_autoscaling() && (group.min_replicas.is_none() || group.max_replicas.is_none()) {
        return Err(format!("worker group {name} must set minReplicas and maxReplicas"));
    }
    let fewest = group.min_replicas.unwrap_or_default();
    let most = group.max_replicas.unwrap_or(i32::MAX);
    for (field, value) in [("minReplicas", fewest), ("maxReplicas", most)] {
        if value < 0 {
            return Err(format!("worker group {name} has negative {field} {value}"));
        }
    }
    if fewest > most {
        return Err(format!(
            "worker group {name} has minReplicas {fewest} greater than maxReplicas {most}"
        ));
    }
    let hosts = group.num_of_hosts.unwrap_or(1);
    // A replica is made as a whole, and a pass is bounded.
    if usize::try_from(hosts).is_ok_and(|hosts| hosts > MOST_PODS_PER_PASS) {
        return Err(format!(
            "worker group {name} has numOfHosts {hosts}, more than {MOST_PODS_PER_PASS}"
        ));
    }
    if group.suspend == Some(true) {
        if !context.settings.gates.deletion_policy {
            return Err(format!(
                "worker group {name} cannot be suspended because the RayJobDeletionPolicy feature gate must be enabled"
            ));
        }
        if context.is_autoscaling() {
            return Err(format!("worker group {name} cannot be suspended with Autoscaler enabled"));
        }
    }
    check_group(name, &group.ray_start_params, &group.resources, &group.labels)
}

/// Parameters that the fields `resources` and `labels` replace.
fn check_group(
    group: &str,
    params: &BTreeMap<String, String>,
    resources: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
) -> Checked {
    let counted = ["num-cpus", "memory", "num-gpus", "resources"];
    if !resources.is_empty() && counted.iter().any(|name| params.contains_key(*name)) {
        return Err(format!(
            "resource fields should not be set in both rayStartParams and Resources for {group} group; please use only one"
        ));
    }
    if params.contains_key("labels") {
        return Err(format!(
            "rayStartParams['labels'] is not supported for {group} group; please use the top-level Labels field instead"
        ));
    }
    for (key, value) in labels {
        if let Some(problem) = key_problems(key).first() {
            return Err(format!("invalid label key for {group} group: '{key}', error: {problem}"));
        }
        if let Some(problem) = value_problems(value).first() {
            return Err(format!(
                "invalid label value for key '{key}' in {group} group: '{value}', error: {problem}"
            ));
        }
    }
    Ok(())
}

fn check_autoscaler(context: &ClusterContext<'_>) -> Checked {
    let options = context.spec.autoscaler_options.clone().unwrap_or_default();
    let by_variable = context.head_variable(AUTOSCALER_V2);
    if !context.is_autoscaling() && matches!(by_variable, Some("1" | "true")) {
        return Err(format!(
            "environment variable {AUTOSCALER_V2} cannot be set to 'true' when enableInTreeAutoscaling is false. Please set enableInTreeAutoscaling: true to use autoscaler v2"
        ));
    }
    if context.is_autoscaling() && options.version.is_some() && by_variable.is_some() {
        return Err(format!(
            "both .spec.autoscalerOptions.version and head Pod env var {AUTOSCALER_V2} are set, please only use the former"
        ));
    }
    let managed = "KUBERAY_GEN_AUTOSCALER_START_CMD";
    if options.env.iter().any(|variable| variable["name"] == managed) {
        return Err(format!("autoscalerOptions.env must not set {managed}"));
    }
    if let Some(seconds) = options.idle_timeout_seconds.filter(|seconds| *seconds < 0) {
        return Err(format!(
            "autoscalerOptions.idleTimeoutSeconds must be non-negative, got {seconds}"
        ));
    }
    if context.is_autoscaler_v2() {
        check_restart_policy("head Pod", &context.spec.head_group_spec.template)?;
    }
    context.spec.worker_group_specs.iter().try_for_each(|group| check_scaled(context, group))
}

fn check_restart_policy(what: &str, template: &Value) -> Checked {
    match text(&template["spec"]["restartPolicy"]) {
        "" | "Never" => Ok(()),
        _ => Err(format!(
            "restartPolicy for {what} should be Never or unset when using autoscaler V2"
        )),
    }
}

/// Fields of a group that only the second autoscaler knows.
fn check_scaled(context: &ClusterContext<'_>, group: &WorkerGroupSpec) -> Checked {
    let name = &group.group_name;
    let is_v2 = context.is_autoscaler_v2();
    if is_v2 {
        check_restart_policy(&format!("worker group {name}"), &group.template)?;
    }
    let not_v2 = |field: &str| {
        format!(
            "worker group {name}: {field} is set, but autoscaler v2 is not enabled. Please set .spec.autoscalerOptions.version to 'v2' (or set {AUTOSCALER_V2} environment variable to 'true' in the head pod if using KubeRay < 1.4.0)"
        )
    };
    if let Some(seconds) = group.idle_timeout_seconds {
        if seconds < 0 {
            return Err(format!(
                "worker group {name}: idleTimeoutSeconds must be non-negative, got {seconds}"
            ));
        }
        if !is_v2 {
            return Err(not_v2("idleTimeoutSeconds"));
        }
    }
    if group.priority.is_none_or(|priority| priority == 0) {
        return Ok(());
    }
    let present = &context.spec.ray_version;
    // A version without numbers, such as `nightly`, is refused like an old one, as in the official operator.
    if version(present).is_none_or(|at| at < (2, 56, 0)) {
        return Err(format!(
            "worker group {name}: priority is set, but minimum Ray version is 2.56.0, got {present}"
        ));
    }
    if !is_v2 {
        return Err(not_v2("priority"));
    }
    Ok(())
}

/// Pods of a submitter and of Serve have no token of Kubernetes, so objects that make clusters cannot use one.
pub(crate) fn check_no_kubernetes_token(kind: &str, spec: &RayClusterSpec) -> Checked {
    let options = spec.auth_options.as_ref();
    match options.is_some_and(|options| options.enable_k8s_token_auth == Some(true)) {
        true => Err(format!("authOptions.enableK8sTokenAuth is not supported by a {kind}")),
        false => Ok(()),
    }
}

fn check_token(context: &ClusterContext<'_>) -> Checked {
    let Some(options) = &context.spec.auth_options else { return Ok(()) };
    let by_kubernetes = options.enable_k8s_token_auth == Some(true);
    if options.mode != "token" {
        if by_kubernetes {
            return Err(
                "authOptions.enableK8sTokenAuth is enabled but authOptions.mode not set to 'token'"
                    .to_owned(),
            );
        }
        return Ok(());
    }
    let present = &context.spec.ray_version;
    // Here a version without numbers is refused, as in the official operator.
    let Some(at) = version(present) else {
        return Err(format!(
            "authOptions.mode is 'token' but RayVersion format is invalid: {present}, could not parse {present:?} as version"
        ));
    };
    if at < (2, 52, 0) {
        return Err(format!(
            "authOptions.mode is 'token' but minimum Ray version is 2.52.0, got {present}"
        ));
    }
    if !by_kubernetes {
        return Ok(());
    }
    if at < (2, 55, 0) {
        return Err(format!(
            "authOptions.enableK8sTokenAuth is enabled but minimum Ray version is 2.55.0, got {present}"
        ));
    }
    if options.secret_name.as_ref().is_some_and(|name| !name.is_empty()) {
        return Err(
            "authOptions.enableK8sTokenAuth is enabled and authOptions.secretName is also set"
                .to_owned(),
        );
    }
    Ok(())
}

/// Fields behind gates.
fn check_gates(context: &ClusterContext<'_>) -> Checked {
    let (spec, gates) = (context.spec, context.settings.gates);
    // Also where they are not enabled, as in the official operator.
    if spec.tls_options.is_some() && !gates.mtls {
        return Err(
            "spec.tlsOptions requires the RayClusterMTLS feature gate to be enabled".to_owned()
        );
    }
    if let Some(options) = &spec.history_server_options {
        if !gates.history_server {
            return Err("RayClusterHistoryServer feature gate is not enabled".to_owned());
        }
        let Some(collector) = &options.collector_options else {
            return Err("historyServerOptions.collectorOptions is required".to_owned());
        };
        if collector.image.as_ref().is_none_or(String::is_empty) {
            return Err("historyServerOptions.collectorOptions.image is required".to_owned());
        }
        check_collector(&collector.env.clone().into())?;
    }
    match &spec.network_policy {
        Some(_) if !gates.network_policy => {
            Err("RayClusterNetworkPolicy feature gate is not enabled".to_owned())
        }
        Some(policy) => check_network_policy(spec, policy),
        None => Ok(()),
    }
}

/// The collector cannot store anything without these variables.
fn check_collector(env: &Value) -> Checked {
    let backend = named(env, "STORAGE_BACKEND").map(|variable| text(&variable["value"]));
    let Some(backend) = backend.filter(|backend| !backend.is_empty()) else {
        return Err("STORAGE_BACKEND environment variable must be set with a literal string value in historyServerOptions.collectorOptions.env".to_owned());
    };
    if backend.eq_ignore_ascii_case("s3") && named(env, "S3_REGION").is_none() {
        return Err(format!(
            "S3_REGION environment variable must be set when STORAGE_BACKEND is {}",
            backend.to_uppercase()
        ));
    }
    Err("the collector of the history server is not built yet".to_owned())
}

fn check_upgrade(context: &ClusterContext<'_>) -> Checked {
    if context.spec.upgrade_strategy.as_ref().is_none_or(|it| it.r#type.is_none()) {
        return Ok(());
    }
    let maker = match context.origin() {
        Origin::User => return Ok(()),
        Origin::Job => "RayJob",
        Origin::Service => "RayService",
    };
    Err(format!("upgradeStrategy cannot be set when RayCluster is created by {maker}"))
}
