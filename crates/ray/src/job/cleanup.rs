//! What is removed after the end of a RayJob, and when.
//!
//! Source: docs/reference/ray.md §8 "deploymentStatus machine".

use std::time::Duration;

use crds::names::labels::MULTI_KUEUE_ORIGIN;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    context::JobContext, phase::JobPhase, status::AttemptStatus, stopping::delete_cluster,
};
use crate::{
    json::{is_terminating, items, label, name},
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
    v1::{DeletionRule, DeletionStrategy},
};

/// Added to the time of a rule, so that the pass comes after it.
const AFTER_DUE: Duration = Duration::from_secs(2);

/// What is removed, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Removal {
    Nothing,
    Workers,
    Cluster,
    Job,
}

/// A removal and when it is due.
struct DueRemoval {
    removal: Removal,
    due: Timestamp,
}

/// Removes what is due of the objects of an ended RayJob.
pub(super) fn clean_up(context: &JobContext<'_>, pass: &mut Pass<'_>, status: &AttemptStatus) {
    // A selected cluster belongs to its user.
    if context.selects_cluster() {
        return;
    }
    let removals = removals(context, status);
    let now = context.now();
    let due = removals.iter().filter(|it| it.due <= now).map(|it| it.removal).max();
    match due {
        Some(Removal::Job) if !is_read_by_another(context.job) => delete_job(context, pass),
        Some(Removal::Job | Removal::Cluster) => {
            if let Some(cluster) = context.own("RayCluster", &status.fields.ray_cluster_name) {
                delete_cluster(context, pass, cluster);
            }
        }
        Some(Removal::Workers) => suspend_workers(context, pass, status),
        Some(Removal::Nothing) | None => {}
    }
    if let Some(next) = removals.iter().map(|it| it.due).filter(|due| *due > now).min() {
        pass.requeue(next.duration_since(now).unsigned_abs() + AFTER_DUE);
    }
}

/// Whether a manager or an owner reads the end of a RayJob, and deletes it afterwards. If it went before, its end would be unknown: a
/// manager would take its copy for lost, an AppWrapper its component.
fn is_read_by_another(job: &Value) -> bool {
    let is_copy = !label(job, MULTI_KUEUE_ORIGIN).is_empty();
    // A RayCronJob leaves its RayJobs to themselves.
    let reads = |owner: &Value| owner["controller"] == true && owner["kind"] != "RayCronJob";
    is_copy || items(&job["metadata"]["ownerReferences"]).iter().any(reads)
}

/// The first of rules, the two old fields and the shutdown that is set.
fn removals(context: &JobContext<'_>, status: &AttemptStatus) -> Vec<DueRemoval> {
    let Some(end) = status.fields.end_time.as_deref().and_then(|end| end.parse().ok()) else {
        return Vec::new();
    };
    let spec = context.spec;
    let ttl = spec.ttl_seconds_after_finished.unwrap_or_default();
    if let Some(strategy) = &spec.deletion_strategy {
        return match strategy.rules() {
            Some(rules) => rules
                .iter()
                .filter(|rule| applies(rule, status))
                .map(|rule| after(removal(&rule.policy), end, rule.condition.ttl_seconds))
                .collect(),
            None => legacy(strategy, status).map(|it| after(it, end, ttl)).into_iter().collect(),
        };
    }
    if !spec.shutdown_after_job_finishes {
        return Vec::new();
    }
    let delete_job = context.settings.delete_finished_jobs;
    vec![after(if delete_job { Removal::Job } else { Removal::Cluster }, end, ttl)]
}

fn after(removal: Removal, end: Timestamp, seconds: i32) -> DueRemoval {
    let due = end.checked_add(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MAX);
    DueRemoval { removal, due }
}

fn applies(rule: &DeletionRule, status: &AttemptStatus) -> bool {
    let condition = &rule.condition;
    let by_job = condition.job_status.as_ref().map(|wanted| *wanted == status.fields.job_status);
    let by_phase = condition
        .job_deployment_status
        .as_ref()
        .map(|wanted| JobPhase::parse(wanted) == status.phase);
    by_job.or(by_phase).unwrap_or_default()
}

fn legacy(strategy: &DeletionStrategy, status: &AttemptStatus) -> Option<Removal> {
    // By the job and not by the phase: an attempt that fails before its job ends keeps its objects.
    let policy = if status.job_failed() {
        strategy.on_failure.as_ref()
    } else {
        strategy.on_success.as_ref().filter(|_| status.job_succeeded())
    };
    policy?.policy.as_deref().map(removal)
}

fn removal(policy: &str) -> Removal {
    match policy {
        "DeleteSelf" => Removal::Job,
        "DeleteCluster" => Removal::Cluster,
        "DeleteWorkers" => Removal::Workers,
        _ => Removal::Nothing,
    }
}

/// Its objects go with it.
fn delete_job(context: &JobContext<'_>, pass: &mut Pass<'_>) {
    if let OrderOutcome::Refused(refusal) = pass.delete(context.job) {
        let path = context.path(context.name());
        let message = format!("Failed to delete RayJob {path}: {}", refusal.message);
        pass.warning("FailedToDeleteRayJob", message);
    }
}

fn suspend_workers(context: &JobContext<'_>, pass: &mut Pass<'_>, status: &AttemptStatus) {
    let wanted = &status.fields.ray_cluster_name;
    let Some(cluster) = context.own("RayCluster", wanted).filter(|it| !is_terminating(it)) else {
        return;
    };
    let groups = items(&cluster["spec"]["workerGroupSpecs"]);
    if groups.iter().all(|group| group["suspend"] == true) {
        return;
    }
    let suspended = |group: &Value| {
        let mut group = group.clone();
        group["suspend"] = json!(true);
        group
    };
    let groups: Vec<Value> = groups.iter().map(suspended).collect();
    // The patch replaces the list, so it must not undo a change that came in between, such as one of the autoscaler.
    let version = &cluster["metadata"]["resourceVersion"];
    let patch = json!({
        "metadata": {"resourceVersion": version},
        "spec": {"workerGroupSpecs": groups},
    });
    let path = context.path(name(cluster));
    match pass.order(RayStep::Patch { target: ObjectTarget::of(cluster), patch }) {
        OrderOutcome::Pending => {}
        OrderOutcome::Done(_) => pass.normal(
            "UpdatedRayCluster",
            format!("Set the `suspend` field to true for all worker groups in cluster {path}"),
        ),
        OrderOutcome::Refused(refusal) => {
            let message =
                format!("Failed to suspend worker groups in cluster {path}: {}", refusal.message);
            pass.warning("FailedToUpdateRayCluster", message);
            pass.requeue(AFTER_DUE);
        }
    }
}
