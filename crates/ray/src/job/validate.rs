//! What the controller refuses of a RayJob: it then ends as ValidationFailed.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use serde_json::Value;

use super::validate_deletion::check_deletion;
use crate::{
    cluster::{check_cluster_spec, check_name, check_no_kubernetes_token},
    json::text,
    names,
    settings::OperatorSettings,
    user_yaml::decode_user_yaml,
    v1::RayJobSpec,
};

/// The most characters of the name of a RayJob: names of its clusters are longer.
const LONGEST_NAME: usize = 47;

/// The reason and the message of the event; the message is also that of the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidJob {
    /// For programs.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
}

/// Checks metadata and spec of a RayJob.
///
/// # Errors
/// The first rule that does not hold.
pub fn check_job(
    job: &Value,
    spec: &RayJobSpec,
    settings: &OperatorSettings,
) -> Result<(), InvalidJob> {
    check_name("RayJob", crate::json::name(job), LONGEST_NAME).map_err(|why| InvalidJob {
        reason: "InvalidRayJobMetadata",
        message: format!("The RayJob metadata is invalid: {why}"),
    })?;
    check_job_spec(job, spec, settings)
        .map_err(|message| InvalidJob { reason: "InvalidRayJobSpec", message })
}

/// Checks the spec of a RayJob. `owner` has the name and the annotations that the cluster would have.
pub(crate) fn check_job_spec(
    owner: &Value,
    spec: &RayJobSpec,
    settings: &OperatorSettings,
) -> Result<(), String> {
    // The order of the official operator: the first message is the one that is reported.
    check_end(spec)?;
    check_deletion(spec, settings)?;
    check_cluster_choice(spec)?;
    check_mode(spec, settings)?;
    if let Some(cluster) = &spec.ray_cluster_spec {
        check_no_kubernetes_token("RayJob", cluster).map_err(|why| invalid(&why))?;
        check_cluster_spec(owner, cluster, settings).map_err(|why| invalid(&why))?;
    }
    check_runtime_env(&spec.runtime_env_yaml)?;
    check_limits(spec)
}

pub(super) fn invalid(why: &str) -> String {
    format!("The RayJob spec is invalid: {why}")
}

/// Whether the job uses a cluster that exists.
fn has_selector(spec: &RayJobSpec) -> bool {
    !spec.cluster_selector.is_empty()
}

fn check_end(spec: &RayJobSpec) -> Result<(), String> {
    let ttl = spec.ttl_seconds_after_finished.unwrap_or_default();
    let without_shutdown = "a RayJob with shutdownAfterJobFinishes set to false";
    // A suspension deletes the cluster, which is to stay without shutdownAfterJobFinishes.
    if spec.suspend && !spec.shutdown_after_job_finishes {
        return Err(invalid(&format!("{without_shutdown} is not allowed to be suspended")));
    }
    if ttl < 0 {
        return Err(invalid("TTLSecondsAfterFinished must be a non-negative integer"));
    }
    if !spec.shutdown_after_job_finishes && ttl > 0 {
        return Err(invalid(&format!("{without_shutdown} cannot have TTLSecondsAfterFinished")));
    }
    Ok(())
}

fn check_cluster_choice(spec: &RayJobSpec) -> Result<(), String> {
    if !has_selector(spec) {
        return match spec.ray_cluster_spec {
            Some(_) => Ok(()),
            None => Err(invalid("one of RayClusterSpec or ClusterSelector must be set")),
        };
    }
    // A selected cluster does not belong to the RayJob, so a suspension cannot delete it.
    if spec.suspend {
        return Err(invalid("the ClusterSelector mode doesn't support the suspend operation"));
    }
    let cluster = spec.cluster_selector.get(names::CLUSTER_LABEL);
    if cluster.is_none_or(String::is_empty) {
        return Err("cluster name in ClusterSelector should not be empty".to_owned());
    }
    if spec.submission_mode == "SidecarMode" {
        return Err("ClusterSelector is not supported in SidecarMode".to_owned());
    }
    // Each attempt has a new cluster.
    if spec.backoff_limit.is_some_and(|limit| limit > 0) {
        return Err(invalid("BackoffLimit is incompatible with ClusterSelector mode"));
    }
    Ok(())
}

/// What a submission mode excludes.
fn check_mode(spec: &RayJobSpec, settings: &OperatorSettings) -> Result<(), String> {
    if spec.submission_mode == "InteractiveMode" && spec.backoff_limit.is_some_and(|it| it > 0) {
        return Err(invalid("BackoffLimit is incompatible with InteractiveMode"));
    }
    if spec.submission_mode != "SidecarMode" {
        return Ok(());
    }
    if spec.submitter_pod_template.is_some() {
        return Err("Currently, SidecarMode doesn't support SubmitterPodTemplate".to_owned());
    }
    // Without the gate nothing starts the submitter again, so there is nothing to limit.
    if spec.submitter_config.is_some() && !settings.gates.sidecar_submitter_restart {
        return Err("Currently, SidecarMode doesn't support SubmitterConfig".to_owned());
    }
    let head = spec.ray_cluster_spec.as_ref().map(|cluster| &cluster.head_group_spec.template);
    match head.map_or("", |template| text(&template["spec"]["restartPolicy"])) {
        "" | "Never" => Ok(()),
        _ => {
            Err("restartPolicy for head Pod should be Never or unset when using SidecarMode"
                .to_owned())
        }
    }
}

/// The runtime environment must be a map in YAML.
fn check_runtime_env(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let parsed = decode_user_yaml::<serde_json::Map<String, Value>>(text);
    parsed.map(|_| ()).map_err(|error| {
        let why = error.to_string();
        // The lines after the first quote the text, which the message has already.
        let why = why.lines().next().unwrap_or_default();
        format!("failed to unmarshal RuntimeEnvYAML: {text}: {why}")
    })
}

fn check_limits(spec: &RayJobSpec) -> Result<(), String> {
    for (name, limit) in [
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("preRunningDeadlineSeconds", spec.pre_running_deadline_seconds),
    ] {
        if limit.is_some_and(|limit| limit <= 0) {
            return Err(invalid(&format!("{name} must be a positive integer")));
        }
    }
    if spec.backoff_limit.is_some_and(|limit| limit < 0) {
        return Err(invalid("backoffLimit must be a positive integer"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn aliases_do_not_multiply_a_runtime_environment() {
        let mut text = format!("env_vars: {{a: &a \"{}\"", "<".repeat(10_000));
        for number in 1..100 {
            let _ = write!(text, ", b{number}: *a");
        }
        text.push('}');
        let error = check_runtime_env(&text).expect_err("it is refused");
        assert!(error.starts_with("failed to unmarshal RuntimeEnvYAML: "), "{error:.80}");
    }
}
