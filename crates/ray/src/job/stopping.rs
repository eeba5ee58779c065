//! Removal of the cluster and the submitter of an attempt.
//!
//! Source: docs/reference/ray.md §8 "deploymentStatus machine".

use serde_json::Value;

use super::{
    context::{JobContext, SubmissionMode},
    status::AttemptStatus,
};
use crate::{
    cluster::is_terminating,
    json::name,
    pass::{OrderOutcome, Pass},
};

/// Deletes what the attempt made, and forgets the attempt when all of it is gone. Whether it is gone is the answer: until then quota
/// is in use.
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
        delete(context, pass, submitter, &SUBMITTER);
    }
    if cluster.is_some() || submitter.is_some() {
        return false;
    }
    status.forget_attempt();
    true
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
