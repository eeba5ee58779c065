//! What the controller refuses: a spec that passes the API server and cannot be run.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    cluster_children::ClusterChildren,
    context::{ClusterContext, Origin, PassInputs},
    probes::{version, version_problem},
    validate_collector::check_history_server,
    validate_groups::{check_head_group, check_worker_group},
    validate_network_policy::check_network_policy,
    validate_storage::check_storage,
};
use crate::{
    json::text,
    security::{INGRESS_REFUSED, enables_ingress},
    settings::OperatorSettings,
    v1::RayClusterSpec,
};

/// The most characters of the name of a RayCluster.
pub(crate) const LONGEST_NAME: usize = 53;

/// The variable that switches to the second autoscaler.
pub(super) const AUTOSCALER_V2: &str = "RAY_enable_autoscaler_v2";

/// The reason and the message of an event.
pub(crate) struct InvalidCluster {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

pub(super) type Checked = Result<(), String>;

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
    if context.settings.security.is_some() && enables_ingress(context.cluster) {
        Err(INGRESS_REFUSED.to_owned())
    } else {
        Ok(())
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
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [0; 32] };
    check_spec(&ClusterContext {
        cluster: owner,
        spec,
        children: &ClusterChildren::default(),
        settings,
        inputs: &inputs,
    })
}

fn check_spec(context: &ClusterContext<'_>) -> Checked {
    // The order of the official operator: the first message is the one that is reported.
    check_head_group(context)?;
    let mut seen = BTreeSet::new();
    for group in &context.spec.worker_group_specs {
        check_worker_group(context, group)?;
        // Pods belong to a group by its name: two groups would delete each other's pods.
        if !seen.insert(&group.group_name) {
            return Err(format!("worker group name {} is not unique", group.group_name));
        }
    }
    check_storage(context)?;
    check_suspended_groups(context)?;
    check_autoscaler(context)?;
    check_history_server(context)?;
    check_token(context)?;
    check_gates(context)
}

/// Groups are suspended for a RayJob, and never beside the autoscaler, which would bring their pods back.
fn check_suspended_groups(context: &ClusterContext<'_>) -> Checked {
    let groups = &context.spec.worker_group_specs;
    let Some(group) = groups.iter().find(|group| group.suspend == Some(true)) else {
        return Ok(());
    };
    let name = &group.group_name;
    if !context.settings.gates.deletion_policy {
        return Err(format!(
            "worker group {name} can be suspended only when the RayJobDeletionPolicy feature gate is enabled"
        ));
    }
    if context.is_autoscaling() {
        Err(format!("worker group {name} cannot be suspended with Autoscaler enabled"))
    } else {
        Ok(())
    }
}

fn check_autoscaler(context: &ClusterContext<'_>) -> Checked {
    check_autoscaler_choice(context)?;
    if context.runs_autoscaler_v2() {
        check_restart_policy("head Pod", &context.spec.head_group_spec.template)?;
        for group in &context.spec.worker_group_specs {
            check_restart_policy(&format!("worker group {}", group.group_name), &group.template)?;
        }
    }
    let Some(options) = &context.spec.autoscaler_options else { return Ok(()) };
    if let Some(seconds) = options.idle_timeout_seconds.filter(|seconds| *seconds < 0) {
        return Err(format!(
            "autoscalerOptions.idleTimeoutSeconds must be non-negative, got {seconds}"
        ));
    }
    let managed = "KUBERAY_GEN_AUTOSCALER_START_CMD";
    if options.env.iter().any(|variable| variable["name"] == managed) {
        Err(format!(
            "autoscalerOptions.env must not contain {managed}: it is managed by KubeRay and injected automatically into the autoscaler container"
        ))
    } else {
        Ok(())
    }
}

/// The variable of the head is the older way to choose the second autoscaler.
fn check_autoscaler_choice(context: &ClusterContext<'_>) -> Checked {
    let by_variable = context.head_variable(AUTOSCALER_V2);
    if !context.is_autoscaling() {
        return match by_variable {
            Some(value @ ("1" | "true")) => Err(format!(
                "environment variable {AUTOSCALER_V2} cannot be set to '{value}' when enableInTreeAutoscaling is false. Please set enableInTreeAutoscaling: true to use autoscaler v2"
            )),
            _ => Ok(()),
        };
    }
    let by_option = context.spec.autoscaler_options.as_ref().and_then(|it| it.version.as_ref());
    if by_option.is_some() && by_variable.is_some() {
        Err(format!(
            "both .spec.autoscalerOptions.version and head Pod env var {AUTOSCALER_V2} are set, please only use the former"
        ))
    } else {
        Ok(())
    }
}

fn check_restart_policy(what: &str, template: &Value) -> Checked {
    match text(&template["spec"]["restartPolicy"]) {
        "" | "Never" => Ok(()),
        _ => Err(format!(
            "restartPolicy for {what} should be Never or unset when using autoscaler V2"
        )),
    }
}

/// Pods of a submitter and of Serve have no token of Kubernetes, so objects that make clusters cannot use one.
pub(crate) fn check_no_kubernetes_token(kind: &str, spec: &RayClusterSpec) -> Checked {
    let options = spec.auth_options.as_ref();
    if options.is_some_and(|options| options.enable_k8s_token_auth == Some(true)) {
        Err(format!("K8s token auth mode is currently not supported for {kind}"))
    } else {
        Ok(())
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
    let at = version_for_tokens(context)?;
    if !by_kubernetes {
        return Ok(());
    }
    if at < (2, 55, 0) {
        let present = &context.spec.ray_version;
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

/// The version of Ray, which must know tokens.
fn version_for_tokens(context: &ClusterContext<'_>) -> Result<(u64, u64, u64), String> {
    let present = &context.spec.ray_version;
    let refused = |why: String| Err(format!("authOptions.mode is 'token' but {why}"));
    if present.is_empty() {
        return refused(
            "RayVersion was not specified. Ray version 2.52.0 or later is required".to_owned(),
        );
    }
    // Here a version without numbers is refused, as in the official operator.
    match version(present) {
        None => {
            let problem = version_problem(present);
            refused(format!("RayVersion format is invalid: {present}, {problem}"))
        }
        Some(at) if at < (2, 52, 0) => {
            refused(format!("minimum Ray version is 2.52.0, got {present}"))
        }
        Some(at) => Ok(at),
    }
}

/// Fields behind gates.
fn check_gates(context: &ClusterContext<'_>) -> Checked {
    let (spec, gates) = (context.spec, context.settings.gates);
    if let Some(policy) = &spec.network_policy {
        if !gates.network_policy {
            return Err(
                "spec.networkPolicy requires the RayClusterNetworkPolicy feature gate to be enabled"
                    .to_owned(),
            );
        }
        check_network_policy(spec, policy)?;
    }
    // Also where they are not enabled, as in the official operator.
    if spec.tls_options.is_some() && !gates.mtls {
        Err("spec.tlsOptions requires the RayClusterMTLS feature gate to be enabled".to_owned())
    } else {
        Ok(())
    }
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
