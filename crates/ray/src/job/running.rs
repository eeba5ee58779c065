//! A RayJob that runs: its submitter, and what the head says of the job.
//!
//! Source: docs/reference/ray.md §8 "deploymentStatus machine".

use std::time::Duration;

use crds::go_duration;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    children::token_secret_of,
    context::{JobContext, SubmissionMode},
    head_service::reconcile_head_service,
    initializing::{cluster, ensure_submitter, leave_early},
    phase::JobPhase,
    status::{AttemptStatus, reasons},
    submission::submission_body,
    submitter::{SubmitterState, submitter_state},
};
use crate::{
    cluster::rfc3339,
    head::{HeadJob, HeadMethod, HeadRequest, is_success, job_of, job_path},
    pass::Pass,
};

/// How long the job may run on after its submitter has finished.
const SUBMITTER_GRACE: Duration = Duration::from_secs(30);

/// The message of a RayJob after its job ended long ago.
const GRACE_MESSAGE: &str = "JobDeploymentStatus does not transition to Complete or Failed within the grace period after JobStatus reaches a terminal state.";

/// What a running RayJob needs next.
pub(super) fn run<'a>(context: &JobContext<'a>, pass: &mut Pass<'a>, status: &mut AttemptStatus) {
    if leave_early(context, status) || ends_late(context, status) {
        return;
    }
    // A cluster that was deleted by hand is made again under its name.
    let Some(cluster) = cluster(context, pass, status) else {
        // A cluster that cannot be made has no head to ask.
        if !pass.is_pending() {
            give_up_silent_head(context, status);
        }
        return;
    };
    if !context.selects_cluster() {
        reconcile_head_service(context, pass, status, &cluster);
    }
    let mut submitter = submitter_state(context, status);
    // The official operator does not notice a Job that was deleted by hand, and the RayJob runs for ever. The submitter asks
    // for the job before it submits, so another one does no harm.
    if submitter == SubmitterState::Missing && !status.job_ended() {
        ensure_submitter(context, pass, status, &cluster);
        submitter = SubmitterState::Running;
    }
    if pass.is_pending() || has_failed(&submitter, status) {
        return;
    }
    check_job(context, pass, status, &submitter, &cluster);
}

/// Whether the job in Ray ended long ago, and its submitter did not.
fn ends_late(context: &JobContext<'_>, status: &mut AttemptStatus) -> bool {
    let info = status.fields.ray_job_info.as_ref();
    let end = info.and_then(|info| info.end_time.as_deref()).and_then(|end| end.parse().ok());
    let grace = context.settings.job_end_grace;
    if !status.job_ended() || !is_over(end, grace, context.now()) {
        return false;
    }
    finish(status);
    // The reason and the message stand also in a RayJob that is complete.
    reasons::GRACE_EXCEEDED.clone_into(&mut status.fields.reason);
    GRACE_MESSAGE.clone_into(&mut status.fields.message);
    true
}

/// Ends an attempt after its head has not said for too long how the job is.
fn give_up_silent_head(context: &JobContext<'_>, status: &mut AttemptStatus) {
    let Some(since) = status.fields.job_status_check_failure_start_time.clone() else { return };
    let timeout = context.settings.job_check_timeout;
    if !is_over(since.parse().ok(), timeout, context.now()) {
        return;
    }
    let message = format!(
        "Job status checks have been failing since {since}; exceeded timeout of {}",
        go_duration::format(timeout)
    );
    status.fail(reasons::CHECK_TIMEOUT_EXCEEDED, Some(message));
}

fn is_over(since: Option<Timestamp>, limit: Duration, now: Timestamp) -> bool {
    let limit = SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
    since.is_some_and(|since| now.duration_since(since) > limit)
}

/// Whether the attempt failed with its submitter. A job that failed before is the cause, and not the submitter that follows it.
fn has_failed(submitter: &SubmitterState, status: &mut AttemptStatus) -> bool {
    match submitter {
        SubmitterState::HeadGone => {
            let message = "Ray head pod not found.".to_owned();
            status.fail(reasons::APP_FAILED, Some(message));
        }
        SubmitterState::Failed(_) if status.job_failed() => status.fail(reasons::APP_FAILED, None),
        SubmitterState::Failed(why) => {
            status.fail(reasons::SUBMISSION_FAILED, Some(why.clone()));
        }
        _ => return false,
    }
    true
}

/// Asks the head for the job, and only then looks at the limits of time: the operator may have been away while the job ended.
fn check_job(
    context: &JobContext<'_>,
    pass: &mut Pass<'_>,
    status: &mut AttemptStatus,
    submitter: &SubmitterState,
    cluster: &Value,
) {
    let head = Head::of(context, status, cluster);
    let path = job_path(&status.fields.job_id);
    let Some(answer) = pass.ask(head.request(HeadMethod::Get, &path, None)) else { return };
    match job_of(answer) {
        HeadJob::Failed => {
            note_failure(context, status);
            give_up_late_job(context, status, submitter);
        }
        HeadJob::NotFound if matches!(submitter, SubmitterState::Finished(_)) => {
            let message = "Submitter completed but Ray job not found in RayCluster.".to_owned();
            status.fail(reasons::APP_FAILED, Some(message));
        }
        HeadJob::NotFound if context.mode() == SubmissionMode::Http => {
            submit(context, pass, status, &head);
        }
        // The submitter has not reached the head yet.
        HeadJob::NotFound => status.fields.job_status_check_failure_start_time = None,
        HeadJob::Known(info) => {
            status.fields.job_status_check_failure_start_time = None;
            status.take(&info);
            follow(status, submitter);
            give_up_late_job(context, status, submitter);
            if cluster["status"].is_object() {
                status.cluster = cluster["status"].clone();
            }
        }
    }
}

/// Submits the job. A job of this id that the head knows already is not submitted twice.
fn submit(context: &JobContext<'_>, pass: &mut Pass<'_>, status: &mut AttemptStatus, head: &Head) {
    let Ok(body) = submission_body(&context.attempt(status)) else {
        note_failure(context, status);
        return;
    };
    match pass.ask(head.request(HeadMethod::Post, "/api/jobs/", Some(body))) {
        Some(answer) if is_success(answer) => {
            status.fields.job_status_check_failure_start_time = None;
        }
        // A head that refuses the job is as bad as one that is silent, and ends the same way.
        Some(_) => note_failure(context, status),
        None => {}
    }
}

fn note_failure(context: &JobContext<'_>, status: &mut AttemptStatus) {
    let since = &mut status.fields.job_status_check_failure_start_time;
    since.get_or_insert_with(|| rfc3339(context.now()));
    give_up_silent_head(context, status);
}

/// What follows from the state of the job and of its submitter.
fn follow(status: &mut AttemptStatus, submitter: &SubmitterState) {
    // A submitter that still follows the logs would lose their end with the cluster.
    let is_submitting = matches!(submitter, SubmitterState::Running);
    if status.job_ended() && !is_submitting {
        finish(status);
    }
}

/// Ends an attempt long after its submitter finished, if the head does not say that the job ended. A head that does not answer must not
/// hold this up.
fn give_up_late_job(
    context: &JobContext<'_>,
    status: &mut AttemptStatus,
    submitter: &SubmitterState,
) {
    let SubmitterState::Finished(Some(finished)) = submitter else { return };
    let is_late = is_over(Some(*finished), SUBMITTER_GRACE, context.now());
    // A head that was given up may still run the job, so its reason stays: it allows no other attempt.
    if !is_late || status.phase != JobPhase::Running || status.job_ended() {
        return;
    }
    let message = format!(
        "The RayJob submitter finished at {} but the ray job did not reach terminal state within {}",
        finished.strftime("%F %T"),
        go_duration::format(SUBMITTER_GRACE)
    );
    status.give_up_job();
    status.fail(reasons::GRACE_EXCEEDED, Some(message));
}

/// Ends an attempt after the end of its job. A job that was stopped counts as complete.
fn finish(status: &mut AttemptStatus) {
    if status.job_failed() {
        status.fail(reasons::APP_FAILED, None);
    } else {
        status.phase = JobPhase::Complete;
    }
}

/// Where the head of an attempt is asked.
struct Head {
    address: String,
    token_secret: Option<String>,
}

impl Head {
    /// The address is that of the status: it names the head to which the job was submitted.
    fn of(context: &JobContext<'_>, status: &AttemptStatus, cluster: &Value) -> Self {
        let token_secret = token_secret_of(cluster, context.settings);
        Self { address: status.fields.dashboard_url.clone(), token_secret }
    }

    fn request(&self, method: HeadMethod, path: &str, body: Option<Value>) -> HeadRequest {
        let url = format!("http://{}{path}", self.address);
        HeadRequest { method, url, body, token_secret: self.token_secret.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_from_a_time_that_is_known() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().expect("a time");
        let minute = Duration::from_secs(60);
        assert!(!is_over(None, minute, now));
        assert!(!is_over("2026-01-01T00:00:00Z".parse().ok(), minute, now));
        assert!(is_over("2025-12-31T23:59:59Z".parse().ok(), minute, now));
        assert_eq!(go_duration::format(minute), "1m0s");
    }
}
