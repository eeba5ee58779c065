//! The container that submits a RayJob to its cluster, and its command.
//!
//! Source: docs/reference/ray.md §8.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::children::JobAttempt;
use crate::{
    cluster::{ClusterContext, dashboard_address, dashboard_port, version},
    json::{field, items, list, object},
    user_yaml::decode_user_yaml,
    v1::RayJobSpec,
};

/// The first version with an option for metadata in its command for submissions.
const METADATA_SINCE: (u64, u64, u64) = (2, 6, 0);

/// Where a submitter runs, and how it reaches the head.
pub(super) struct Submitter {
    /// The address for the commands of Ray.
    address: String,
    /// The address that is asked until the head is healthy.
    health: String,
    /// `RAY_DASHBOARD_ADDRESS`.
    variable: Value,
    /// Whether the container may start again after it submitted.
    restarts: bool,
    is_sidecar: bool,
}

impl Submitter {
    /// A container in the pod of the head.
    pub(super) fn beside_head(attempt: &JobAttempt<'_>, context: &ClusterContext<'_>) -> Self {
        let port = dashboard_port(context);
        Self {
            address: format!("http://127.0.0.1:{port}"),
            health: format!("http://localhost:{port}"),
            variable: variable(attempt.dashboard_url),
            restarts: attempt.settings.gates.sidecar_submitter_restart,
            is_sidecar: true,
        }
    }

    /// A pod of a Job.
    ///
    /// # Errors
    /// The dashboard has no address.
    pub(super) fn of_job(context: &ClusterContext<'_>) -> Result<Self, &'static str> {
        let address = dashboard_address(context)?;
        Ok(Self {
            address: format!("http://{address}"),
            health: format!("http://{address}"),
            variable: variable(&address),
            restarts: true,
            is_sidecar: false,
        })
    }
}

/// The variable with the address of the dashboard. As recorded it has no value before the address is known.
fn variable(address: &str) -> Value {
    let mut variable = json!({"name": "RAY_DASHBOARD_ADDRESS"});
    if !address.is_empty() {
        variable["value"] = json!(address);
    }
    variable
}

/// Completes the container of a submitter. A command of the user stays.
pub(super) fn submitter_container(
    attempt: &JobAttempt<'_>,
    submitter: &Submitter,
    container: &mut Value,
) {
    if items(&container["command"]).is_empty() {
        let shell = if attempt.settings.login_shell { "-cel" } else { "-ce" };
        *field(container, "command") = json!(["/bin/bash", shell, "--"]);
        *field(container, "args") = json!([script(attempt, submitter)]);
    }
    // Behind its gate, because a policy of a single container needs a newer Kubernetes.
    if submitter.is_sidecar && submitter.restarts {
        object(container).insert("restartPolicy".to_owned(), json!("OnFailure"));
    }
    // The last of several variables of a name counts: these are not the user's to change.
    list(container, "env").extend([
        json!({"name": "PYTHONUNBUFFERED", "value": "1"}),
        submitter.variable.clone(),
        json!({"name": "RAY_JOB_SUBMISSION_ID", "value": attempt.job_id}),
    ]);
}

/// Waits for the head, submits and follows the logs. A submitter that may start again submits only a job that Ray does not know.
fn script(attempt: &JobAttempt<'_>, submitter: &Submitter) -> String {
    let (address, id) = (&submitter.address, attempt.job_id);
    let wait = format!(
        "until python -c \"import urllib.request as r; exit(b'success' not in r.urlopen('{}/api/gcs_healthz', timeout=10).read())\" >/dev/null 2>&1 ; do echo 'waiting for the head of the cluster' ; sleep 2 ; done",
        submitter.health
    );
    let options = options(attempt);
    // A line break behind it would end the command before its `;`.
    let entrypoint = attempt.spec.entrypoint.trim();
    let submit = format!("ray job submit --address {address}");
    // Without `--no-wait` the command follows the logs itself, and its end is that of the job.
    if !submitter.restarts {
        return format!("{wait} ; {submit}{options} -- {entrypoint} ;");
    }
    format!(
        "{wait} ; if ! ray job status --address {address} {id} >/dev/null 2>&1 ; then {submit} --no-wait{options} -- {entrypoint} ; fi ; ray job logs --address {address} --follow {id}"
    )
}

/// The body of the request that submits a job without a submitter.
///
/// # Errors
/// `entrypointResources` is no JSON, which no check before finds.
pub(super) fn submission_body(attempt: &JobAttempt<'_>) -> serde_json::Result<Value> {
    let spec = attempt.spec;
    let mut body = json!({"entrypoint": spec.entrypoint, "submission_id": attempt.job_id});
    let mut add = |name: &str, value: Value| {
        object(&mut body).insert(name.to_owned(), value);
    };
    if let Some(env) = runtime_env(attempt).filter(|env| !env.is_empty()) {
        add("runtime_env", env.into());
    }
    if let Some(metadata) = metadata(spec) {
        add("metadata", metadata.clone());
    }
    if spec.entrypoint_num_cpus > 0.0 {
        add("entrypoint_num_cpus", number(spec.entrypoint_num_cpus));
    }
    if spec.entrypoint_num_gpus > 0.0 {
        add("entrypoint_num_gpus", number(spec.entrypoint_num_gpus));
    }
    if !spec.entrypoint_resources.is_empty() {
        add("entrypoint_resources", serde_json::from_str(&spec.entrypoint_resources)?);
    }
    Ok(body)
}

/// A number as it stands in the spec: a whole one without a fraction, since Ray compares counts as integers.
///
/// It goes through its shortest text. A cast would add the error of the smaller type: 1.1 would be 1.100000023841858.
fn number(value: f32) -> Value {
    let text = value.to_string();
    let whole = text.parse::<i64>().map(|whole| json!(whole));
    whole.unwrap_or_else(|_| text.parse::<f64>().map_or(Value::Null, |value| json!(value)))
}

/// The runtime environment, if the spec has one.
fn runtime_env(attempt: &JobAttempt<'_>) -> Option<Map<String, Value>> {
    let yaml = Some(&attempt.spec.runtime_env_yaml).filter(|yaml| !yaml.is_empty())?;
    decode_user_yaml(yaml).ok()
}

fn metadata(spec: &RayJobSpec) -> Option<&Value> {
    let is_empty = |it: &Value| it.as_object().is_none_or(Map::is_empty);
    spec.metadata.as_ref().filter(|it| !is_empty(it))
}

/// Why a submitter cannot pass on the metadata of a job: the option for it is one of a later Ray. A version that is not written down, as
/// that of a selected cluster, or cannot be read, such as `nightly`, is taken for one that has it.
pub(super) fn metadata_problem(spec: &RayJobSpec) -> Option<&'static str> {
    if metadata(spec).is_none() || !submits_by_option(spec) || !spec.cluster_selector.is_empty() {
        return None;
    }
    let present = version(&spec.ray_cluster_spec.as_ref()?.ray_version)?;
    (present < METADATA_SINCE)
        .then_some("the Ray version must be at least 2.6.0 to use the metadata field")
}

/// Whether a submitter runs a command of the operator, which has metadata as an option.
fn submits_by_option(spec: &RayJobSpec) -> bool {
    match spec.submission_mode.as_str() {
        "SidecarMode" => true,
        "" | "K8sJobMode" => !has_own_command(spec),
        _ => false,
    }
}

/// Whether the template of the submitter has a command, which the operator does not change.
fn has_own_command(spec: &RayJobSpec) -> bool {
    let template = spec.submitter_pod_template.as_ref();
    template.is_some_and(|it| !items(&it["spec"]["containers"][0]["command"]).is_empty())
}

fn options(attempt: &JobAttempt<'_>) -> String {
    let spec = attempt.spec;
    let mut options = String::new();
    let mut add = |name: &str, value: &str| {
        let _ = write!(options, " --{name} {value}");
    };
    if let Some(env) = runtime_env(attempt) {
        add("runtime-env-json", &quoted(&go_json(&Value::Object(env))));
    }
    if let Some(metadata) = metadata(spec) {
        add("metadata-json", &quoted(&go_json(metadata)));
    }
    if !attempt.job_id.is_empty() {
        add("submission-id", attempt.job_id);
    }
    for (name, value) in [
        ("entrypoint-num-cpus", spec.entrypoint_num_cpus),
        ("entrypoint-num-gpus", spec.entrypoint_num_gpus),
    ] {
        if value > 0.0 {
            add(name, &format!("{value:.6}"));
        }
    }
    if !spec.entrypoint_resources.is_empty() {
        add("entrypoint-resources", &quoted(&spec.entrypoint_resources));
    }
    options
}

/// JSON as Go writes it, which escapes what HTML would read.
fn go_json(value: &Value) -> String {
    let text = value.to_string();
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// A text as one word of a shell in which nothing is expanded.
fn quoted(text: &str) -> String {
    let mut word = String::from("\"");
    for character in text.chars() {
        if matches!(character, '"' | '\\' | '$' | '`') {
            word.push('\\');
        }
        word.push(character);
    }
    word.push('"');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_sent_as_they_stand_in_the_spec() {
        for text in ["1.1", "0.1", "2.5", "1", "3000", "0.000001"] {
            let value: f32 = text.parse().expect("a number");
            let expected: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(number(value), expected, "{text}");
        }
        assert!(number(f32::MAX).is_number());
    }
}
