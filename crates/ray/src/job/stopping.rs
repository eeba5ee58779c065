//! Removal of the cluster and the submitter of an attempt.
//!
//! Source: docs/reference/ray.md §8 "deploymentStatus machine".

use serde_json::Value;

use super::{
    context::{JobContext, SubmissionMode},
    phase::JobPhase,
    status::AttemptStatus,
};
use crate::{
    json::{is_terminating, name},
    pass::{OrderOutcome, Pass},
};

/// Deletes what the attempt made, and forgets the attempt when all of it is gone. Returns whether it is gone: until then quota is in
/// use.
pub(super) fn stop(
    context: &JobContext<'_>,
    pass: &mut Pass<'_>,
    status: &mut AttemptStatus,
) -> bool {
    let cluster = context.own("RayCluster", &status.fields.ray_cluster_name);
    if let Some(cluster) = cluster {
        delete_cluster(context, pass, cluster);
    }
    let submitter = match context.mode() {
        SubmissionMode::Job => context.own("Job", context.name()),
        _ => None,
    };
    if let Some(submitter) = submitter {
        delete_submitter(context, pass, submitter);
    }
    if cluster.is_some() || submitter.is_some() {
        return false;
    }
    status.forget_attempt();
    true
}

/// Deletes clusters of the RayJob that are not that of the attempt: the create of an earlier attempt may be carried out after its end.
///
/// The official operator leaves such a cluster, which runs beside that of the next attempt, or without quota.
pub(super) fn remove_superfluous(
    context: &JobContext<'_>,
    pass: &mut Pass<'_>,
    status: &AttemptStatus,
) {
    let of_attempt = status.fields.ray_cluster_name.as_str();
    let is_superfluous = |object: &&Value| {
        object["kind"] == "RayCluster" && name(object) != of_attempt && context.owns(object)
    };
    for cluster in context.children.iter().copied().filter(is_superfluous) {
        delete_cluster(context, pass, cluster);
    }
    // A suspended RayJob has no attempt, so a submitter is one of an earlier attempt.
    if status.phase == JobPhase::Suspended
        && let Some(submitter) = context.own("Job", context.name())
    {
        delete_submitter(context, pass, submitter);
    }
}

/// Deletes the Job that submits.
pub(super) fn delete_submitter(context: &JobContext<'_>, pass: &mut Pass<'_>, submitter: &Value) {
    delete(context, pass, submitter, &SUBMITTER);
}

/// Deletes the cluster. A cluster that is being deleted is left alone.
pub(super) fn delete_cluster(context: &JobContext<'_>, pass: &mut Pass<'_>, cluster: &Value) {
    delete(context, pass, cluster, &CLUSTER);
}

struct DeletionEvents {
    deleted: &'static str,
    failed: &'static str,
    what: &'static str,
}

const CLUSTER: DeletionEvents = DeletionEvents {
    deleted: "DeletedRayCluster",
    failed: "FailedToDeleteRayCluster",
    what: "cluster",
};

const SUBMITTER: DeletionEvents = DeletionEvents {
    deleted: "DeletedRayJobSubmitter",
    failed: "FailedToDeleteRayJobSubmitter",
    what: "submitter K8s Job",
};

fn delete(context: &JobContext<'_>, pass: &mut Pass<'_>, object: &Value, events: &DeletionEvents) {
    if is_terminating(object) {
        return;
    }
    let (what, path) = (events.what, context.path(name(object)));
    match pass.delete(object) {
        OrderOutcome::Pending => {}
        OrderOutcome::Done(_) => pass.normal(events.deleted, format!("Deleted {what} {path}")),
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to delete {what} {path}: {}", refusal.message);
            pass.warning(events.failed, message);
        }
    }
}
