//! The order of the steps for a RayJob.
//!
//! Source: docs/reference/ray.md §8.

use std::time::Duration;

use crds::decode::from_value;
use serde_json::Value;

use super::{
    children::token_secret_of,
    cleanup::clean_up,
    context::{JobContext, SubmissionMode},
    initializing::{initialize, wait_for_job_id},
    phase::JobPhase,
    running::run,
    status::{AttemptStatus, reasons},
    stopping::{remove_superfluous, stop},
    submission::metadata_problem,
    validate::{InvalidJob, check_job, invalid},
};
use crate::{
    PassInputs,
    finalizers::OF_JOB,
    head::{HeadMethod, HeadRequest, job_path},
    json::{is_run_elsewhere, is_terminating, name, text},
    names,
    pass::Pass,
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
    v1::RayJobSpec,
};

/// When a RayJob is looked at again: heads and deadlines are polled.
const POLL: Duration = Duration::from_secs(3);

/// What a RayJob needs next.
///
/// `children` are the objects of its namespace that it may own or meet: RayClusters, Services and Jobs by name, and the pod of the head
/// of its cluster. The protocol of steps and answers is that of [`crate::cluster::decide`]; a request to a head is an order as well.
#[must_use]
pub fn decide(
    job: &Value,
    children: &[&Value],
    answers: &[RayAnswer],
    inputs: &PassInputs,
    settings: &OperatorSettings,
) -> Vec<RayStep> {
    if is_run_elsewhere(job) {
        return Vec::new();
    }
    let mut pass = Pass::new(answers);
    let before = AttemptStatus::read(job);
    // Before the validation, so that a job that became invalid can still be deleted.
    if is_terminating(job) {
        finalize(job, children, &before, settings, &mut pass);
        return pass.finish();
    }
    let checked = checked(job, &before, settings).and_then(|spec| check_phase(&before, spec));
    let spec = match checked.and_then(|spec| check_submission(&before, spec)) {
        Ok(spec) => spec,
        Err(invalid) => {
            refuse(job, &before, &invalid, &mut pass);
            return pass.finish();
        }
    };
    // Before the first object, so that a deleted RayJob always stops its job. The change of the object brings the next pass.
    if !OF_JOB.is_on(job) && !before.phase.is_final() {
        let is_refused = OF_JOB.add(job, &mut pass).is_some_and(|written| written.is_err());
        // One that was begun ends and gives its quota back although the finalizer was taken away.
        if !is_refused || !before.phase.is_begun() {
            return pass.finish();
        }
    }
    let context = JobContext { job, spec: &spec, children, settings, inputs };
    let mut status = before.clone();
    remove_superfluous(&context, &mut pass, &status);
    advance(&context, &mut pass, &mut status);
    if pass.is_pending() {
        return pass.finish();
    }
    status.count_end(&before, &spec, inputs.now);
    if status.differs(&before) {
        pass.status(status.to_value());
    }
    if !status.phase.is_final() {
        pass.requeue(POLL);
    }
    pass.finish()
}

fn advance<'a>(context: &JobContext<'a>, pass: &mut Pass<'a>, status: &mut AttemptStatus) {
    match status.phase {
        JobPhase::New => begin(context, status),
        JobPhase::Initializing => initialize(context, pass, status),
        JobPhase::Waiting => wait_for_job_id(context, status),
        JobPhase::Running => run(context, pass, status),
        JobPhase::Suspending => {
            if stop(context, pass, status) {
                status.phase = JobPhase::Suspended;
            }
        }
        JobPhase::Retrying => {
            if stop(context, pass, status) {
                status.phase = JobPhase::New;
            }
        }
        JobPhase::Suspended => {
            if !context.spec.suspend {
                status.phase = JobPhase::New;
            }
        }
        JobPhase::Complete | JobPhase::Failed => clean_up(context, pass, status),
        // A repaired RayJob stays as it is, as with the official operator: it is deleted and made again.
        JobPhase::ValidationFailed | JobPhase::Unknown => {}
    }
}

fn begin(context: &JobContext<'_>, status: &mut AttemptStatus) {
    let random = |purpose: &str| format!("{}-{}", context.name(), context.inputs.suffix(purpose));
    let job_id = match (context.spec.job_id.as_str(), context.mode()) {
        // The user submits the job and names it afterwards.
        (_, SubmissionMode::Interactive) => String::new(),
        ("", _) => random("job"),
        (given, _) => given.to_owned(),
    };
    let selected = context.spec.cluster_selector.get(names::CLUSTER_LABEL);
    let cluster = selected.cloned().unwrap_or_else(|| random("cluster"));
    status.begin(job_id, cluster, context.now());
}

fn checked(
    job: &Value,
    before: &AttemptStatus,
    settings: &OperatorSettings,
) -> Result<RayJobSpec, InvalidJob> {
    let spec = from_value::<RayJobSpec>(&job["spec"]).map_err(|error| {
        let message = format!("The RayJob spec is invalid: {error}");
        InvalidJob { reason: "InvalidRayJobSpec", message }
    })?;
    // A gate that is set off refuses new RayJobs only: it fails none that was accepted with it.
    if before.phase.is_begun() {
        check_job(job, &spec, &settings.with_all_gates())?;
    } else {
        check_job(job, &spec, settings)?;
    }
    Ok(spec)
}

/// Only `InteractiveMode` has a phase that waits for the user.
fn check_phase(status: &AttemptStatus, spec: RayJobSpec) -> Result<RayJobSpec, InvalidJob> {
    if status.phase == JobPhase::Waiting && spec.submission_mode != "InteractiveMode" {
        return Err(InvalidJob {
            reason: "InvalidRayJobStatus",
            message:
                "The RayJob status is invalid: JobDeploymentStatus cannot be `Waiting` when SubmissionMode is not InteractiveMode"
                    .to_owned(),
        });
    }
    Ok(spec)
}

/// Before the first attempt has a cluster. A RayJob that was begun by an earlier version of the operator is not failed for it.
fn check_submission(status: &AttemptStatus, spec: RayJobSpec) -> Result<RayJobSpec, InvalidJob> {
    match metadata_problem(&spec).filter(|_| !status.phase.is_begun()) {
        Some(why) => Err(InvalidJob { reason: "InvalidRayJobSpec", message: invalid(why) }),
        None => Ok(spec),
    }
}

fn refuse(job: &Value, before: &AttemptStatus, invalid: &InvalidJob, pass: &mut Pass<'_>) {
    let mut status = before.clone();
    status.phase = JobPhase::ValidationFailed;
    reasons::VALIDATION_FAILED.clone_into(&mut status.fields.reason);
    status.fields.message.clone_from(&invalid.message);
    // Once per message: no pass follows until the RayJob changes.
    if status != *before {
        let namespace = text(&job["metadata"]["namespace"]);
        let message = format!("{namespace}/{}: {}", name(job), invalid.message);
        pass.warning(invalid.reason, message);
        pass.status(status.to_value());
    }
}

/// Asks the head to stop a job that may run, and lets the RayJob go. The cluster goes with it.
fn finalize(
    job: &Value,
    children: &[&Value],
    status: &AttemptStatus,
    settings: &OperatorSettings,
    pass: &mut Pass<'_>,
) {
    if !OF_JOB.is_on(job) {
        return;
    }
    let fields = &status.fields;
    let may_run =
        !status.job_ended() && !fields.dashboard_url.is_empty() && !fields.job_id.is_empty();
    if may_run {
        let url = format!("http://{}{}/stop", fields.dashboard_url, job_path(&fields.job_id));
        let token_secret = token_of(children, status, settings);
        let request = HeadRequest { method: HeadMethod::Post, url, body: None, token_secret };
        // The answer decides nothing: a head that is gone keeps no RayJob.
        if pass.ask(request).is_none() {
            return;
        }
    }
    OF_JOB.remove(job, pass);
}

fn token_of(
    children: &[&Value],
    status: &AttemptStatus,
    settings: &OperatorSettings,
) -> Option<String> {
    let wanted = &status.fields.ray_cluster_name;
    let is_cluster = |it: &&Value| it["kind"] == "RayCluster" && name(it) == wanted;
    let cluster = children.iter().copied().find(is_cluster)?;
    token_secret_of(cluster, settings)
}
