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
    /// The head, in whose pod it ran, is gone.
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
    let ended = submitters.next().map_or(&Value::Null, |it| &it["state"]["terminated"]);
    match ended["exitCode"].as_i64() {
        None => SubmitterState::Running,
        Some(0) => SubmitterState::Finished(time(&ended["finishedAt"])),
        // The kubelet starts it again, and it submits a job only once.
        Some(_) if context.settings.gates.sidecar_submitter_restart => SubmitterState::Running,
        Some(code) => SubmitterState::Failed(format!(
            "Ray head pod container {} terminated with exit code {code}: {}",
            names::SUBMITTER_CONTAINER,
            text(&ended["reason"])
        )),
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    text(value).parse().ok()
}
