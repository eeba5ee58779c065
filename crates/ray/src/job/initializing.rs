//! From the first look at a RayJob until its job may run.
//!
//! Source: docs/reference/ray.md §8.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    children::dashboard_of,
    context::{JobContext, SubmissionMode},
    phase::JobPhase,
    status::{AttemptStatus, reasons},
    stopping::delete_submitter,
    submission::metadata_problem,
};
use crate::{
    cluster::same_status,
    json::{name, text},
    names,
    pass::{OrderOutcome, Pass},
    step::RayStep,
};

/// The reason of the event about a RayJob that waits because the dashboard of its cluster cannot be reached.
const DASHBOARD_NOT_FOUND: &str = "DashboardNotFound";

/// Makes the cluster, waits until it is ready, and makes the submitter.
pub(super) fn initialize<'a>(
    context: &JobContext<'a>,
    pass: &mut Pass<'a>,
    status: &mut AttemptStatus,
) {
    if leave_early(context, status) || is_late(context, status) {
        return;
    }
    let Some(cluster) = cluster(context, pass, status) else { return };
    if text(&cluster["status"]["state"]) != names::STATE_READY {
        // The copy shows why a job does not start.
        if cluster["status"].is_object() && !same_status(&status.cluster, &cluster["status"]) {
            status.cluster = cluster["status"].clone();
        }
        return;
    }
    match dashboard_of(&cluster, context.settings) {
        Ok(address) => status.fields.dashboard_url = address,
        Err(why) => {
            let message = format!("RayCluster {}: {why}", context.path(name(&cluster)));
            pass.warning(DASHBOARD_NOT_FOUND, message);
            return;
        }
    }
    if context.mode() == SubmissionMode::Job && !ensure_submitter(context, pass, status, &cluster) {
        return;
    }
    status.phase = match context.mode() {
        SubmissionMode::Interactive => JobPhase::Waiting,
        _ => JobPhase::Running,
    };
}

/// Waits until the user has named the job.
///
/// The official operator ignores a suspension here, so that an eviction by Kueue would never free the quota of the cluster. The time of
/// the job itself does not count before it has a name: `activeDeadlineSeconds` is looked at again when it runs.
pub(super) fn wait_for_job_id(context: &JobContext<'_>, status: &mut AttemptStatus) {
    if is_suspended(context, status) || is_late(context, status) || context.spec.job_id.is_empty() {
        return;
    }
    status.fields.job_id.clone_from(&context.spec.job_id);
    status.phase = JobPhase::Running;
}

/// Whether the RayJob was suspended, or its time is over.
pub(super) fn leave_early(context: &JobContext<'_>, status: &mut AttemptStatus) -> bool {
    let limit = context.spec.active_deadline_seconds;
    is_suspended(context, status)
        || passed(context, status, limit, "activeDeadlineSeconds", reasons::DEADLINE_EXCEEDED)
}

/// Whether the RayJob was suspended.
fn is_suspended(context: &JobContext<'_>, status: &mut AttemptStatus) -> bool {
    if context.spec.suspend {
        status.phase = JobPhase::Suspending;
    }
    context.spec.suspend
}

/// Whether the time until the job runs is over.
fn is_late(context: &JobContext<'_>, status: &mut AttemptStatus) -> bool {
    let limit = context.spec.pre_running_deadline_seconds;
    let reason = reasons::PRE_RUNNING_DEADLINE_EXCEEDED;
    passed(context, status, limit, "preRunningDeadlineSeconds", reason)
}

/// A time as Go prints it.
fn go_time(time: &str) -> String {
    let time = time.parse::<Timestamp>().unwrap_or_default();
    time.strftime("%F %T +0000 UTC").to_string()
}

fn passed(
    context: &JobContext<'_>,
    status: &mut AttemptStatus,
    limit: Option<i32>,
    field: &str,
    reason: &str,
) -> bool {
    let start = status.fields.start_time.as_deref();
    if !context.has_passed(start, limit) {
        return false;
    }
    let (start, limit) = (go_time(start.unwrap_or_default()), limit.unwrap_or_default());
    let mut title = field.to_owned();
    title[..1].make_ascii_uppercase();
    let message =
        format!("The RayJob has passed the {field}. StartTime: {start}. {title}: {limit}");
    status.fail(reason, Some(message));
    true
}

/// The cluster of the attempt, which is made if it is not there. None while it is being made, or if that is refused.
pub(super) fn cluster<'a>(
    context: &JobContext<'a>,
    pass: &mut Pass<'a>,
    status: &AttemptStatus,
) -> Option<Cow<'a, Value>> {
    let wanted = &status.fields.ray_cluster_name;
    if let Some(cluster) = context.child("RayCluster", wanted) {
        return Some(Cow::Borrowed(cluster));
    }
    let path = context.path(wanted);
    if context.selects_cluster() {
        let message = format!(
            "RayCluster {path} set in the clusterSelector is not found. It must be created manually"
        );
        pass.warning("RayClusterNotFound", message);
        return None;
    }
    // The cluster would wait for a submitter that is never made.
    if let Some(why) = metadata_problem(context.spec) {
        let message = format!("Failed to create RayCluster {path}: {why}");
        pass.warning("FailedToCreateRayCluster", message);
        return None;
    }
    match pass.order(RayStep::Create(context.attempt(status).ray_cluster())) {
        OrderOutcome::Pending => None,
        OrderOutcome::Done(cluster) => {
            pass.normal("CreatedRayCluster", format!("Created RayCluster {path}"));
            Some(Cow::Borrowed(cluster))
        }
        // Made by an earlier pass: the cache does not show it yet.
        OrderOutcome::Refused(refusal) if refusal.is_conflict() => None,
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to create RayCluster {path}: {}", refusal.message);
            pass.warning("FailedToCreateRayCluster", message);
            None
        }
    }
}

/// Makes the Job that submits, if it is not there. Returns whether it is there.
pub(super) fn ensure_submitter(
    context: &JobContext<'_>,
    pass: &mut Pass<'_>,
    status: &AttemptStatus,
    cluster: &Value,
) -> bool {
    if let Some(job) = context.own("Job", context.name()) {
        // The create of an earlier attempt was carried out late: that Job submits to a cluster that is gone.
        let is_present = context.attempt(status).has_submitter(job);
        if !is_present {
            delete_submitter(context, pass, job);
        }
        return is_present;
    }
    let path = context.path(context.name());
    let fail = |pass: &mut Pass<'_>, why: &str| {
        let message = format!("Failed to create new Kubernetes Job {path}: {why}");
        pass.warning("FailedToCreateRayJobSubmitter", message);
        false
    };
    // A foreign Job would end this RayJob with its own end.
    if context.child("Job", context.name()).is_some() {
        return fail(pass, "another Job has this name");
    }
    let job = match context.attempt(status).submitter_job(cluster) {
        Ok(job) => job,
        Err(why) => return fail(pass, &why),
    };
    match pass.order(RayStep::Create(job)) {
        OrderOutcome::Pending => false,
        OrderOutcome::Done(job) => {
            let path = context.path(name(job));
            pass.normal("CreatedRayJobSubmitter", format!("Created Kubernetes Job {path}"));
            true
        }
        OrderOutcome::Refused(refusal) if refusal.is_conflict() => false,
        OrderOutcome::Refused(refusal) => fail(pass, &refusal.message),
    }
}
