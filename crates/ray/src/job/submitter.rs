//! What became of the submitter of an attempt.
//!
//! Source: docs/reference/ray.md §8 "deploymentStatus machine".

use jiff::Timestamp;
use serde_json::Value;

use super::{
    context::{JobContext, SubmissionMode},
    status::AttemptStatus,
};
use crate::{
    conditions_of,
    json::{items, text},
    names,
};

/// The state of a submitter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SubmitterState {
    /// The mode has none: the end of the job alone counts.
    None,
    /// It submits, or follows the logs.
    Running,
    /// The Job that submits is not there.
    Missing,
    /// It ended without an error, at this time if it is known.
    Finished(Option<Timestamp>),
    /// It failed, with a message.
    Failed(String),
    /// The head is gone, and the submitter ran in its pod.
    HeadGone,
}

/// The state of the submitter.
pub(super) fn submitter_state(context: &JobContext<'_>, status: &AttemptStatus) -> SubmitterState {
    match context.mode() {
        SubmissionMode::Job => match context.own("Job", context.name()) {
            Some(job) => state_of_job(job),
            None => SubmitterState::Missing,
        },
        SubmissionMode::Sidecar => match context.head_pod(&status.fields.ray_cluster_name) {
            Some(head) => state_of_sidecar(context, head),
            None => SubmitterState::HeadGone,
        },
        SubmissionMode::Http | SubmissionMode::Interactive | SubmissionMode::Unknown => {
            SubmitterState::None
        }
    }
}

fn state_of_job(job: &Value) -> SubmitterState {
    if let Some(failed) = conditions_of::find(job, "Failed").filter(|it| it["status"] == "True") {
        return SubmitterState::Failed(format!(
            "Job submission has failed. Reason: {}. Message: {}",
            text(&failed["reason"]),
            text(&failed["message"])
        ));
    }
    match conditions_of::find(job, "Complete").filter(|it| it["status"] == "True") {
        Some(complete) => SubmitterState::Finished(time(&complete["lastTransitionTime"])),
        None => SubmitterState::Running,
    }
}

fn state_of_sidecar(context: &JobContext<'_>, head: &Value) -> SubmitterState {
    let containers = items(&head["status"]["containerStatuses"]).iter();
    let mut submitters = containers.filter(|it| it["name"] == names::SUBMITTER_CONTAINER);
    let submitter = submitters.next().unwrap_or(&Value::Null);
    let ended = &submitter["state"]["terminated"];
    match ended["exitCode"].as_i64() {
        Some(0) => SubmitterState::Finished(time(&ended["finishedAt"])),
        // The kubelet starts it again, and it submits a job only once.
        _ if context.settings.gates.sidecar_submitter_restart => {
            state_of_restarted(context, submitter)
        }
        None => SubmitterState::Running,
        Some(code) => SubmitterState::Failed(format!(
            "Ray head pod container {} terminated with exit code {code}: {}",
            names::SUBMITTER_CONTAINER,
            text(&ended["reason"])
        )),
    }
}

/// A submitter that the kubelet starts again after each failure, without a limit of its own.
fn state_of_restarted(context: &JobContext<'_>, submitter: &Value) -> SubmitterState {
    let config = context.spec.submitter_config.as_ref();
    let Some(limit) = config.and_then(|it| it.backoff_limit) else {
        return SubmitterState::Running;
    };
    let restarts = submitter["restartCount"].as_i64().unwrap_or_default();
    let state = &submitter["state"];
    // Of one that waits, only a container that ran already has failed.
    let has_failed = state["terminated"].is_object()
        || (state["waiting"].is_object() && submitter["lastState"]["terminated"].is_object());
    let used_up = if has_failed { restarts + 1 } else { restarts };
    if used_up <= i64::from(limit.max(0)) {
        return SubmitterState::Running;
    }
    SubmitterState::Failed(format!(
        "Ray head pod container {} failed after {restarts} restarts; submitterConfig.backoffLimit is {limit}",
        names::SUBMITTER_CONTAINER
    ))
}

fn time(value: &Value) -> Option<Timestamp> {
    text(value).parse().ok()
}
