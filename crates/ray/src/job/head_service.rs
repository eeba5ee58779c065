//! The Service of the present head: its name stays the same over all attempts.
//!
//! Source: docs/reference/ray.md §8 "Children of RayJob".

use serde_json::Value;

use super::{context::JobContext, status::AttemptStatus};
use crate::{
    cluster::select_head,
    json::{field, name},
    pass::{OrderOutcome, Pass},
    service_spec::replacement,
    step::{ObjectTarget, RayStep},
};

/// Makes the Service, or lets it select the present head. A failure is an event only: the job runs without the Service.
pub(super) fn reconcile_head_service(
    context: &JobContext<'_>,
    pass: &mut Pass<'_>,
    status: &AttemptStatus,
    cluster: &Value,
) {
    let Ok(mut wanted) = context.attempt(status).head_service(cluster) else { return };
    if let Some(head) = context.head_pod(name(cluster)) {
        select_head(field(field(&mut wanted, "spec"), "selector"), head);
    }
    let path = context.path(name(&wanted));
    match context.child("Service", name(&wanted)) {
        None => create(pass, wanted, &path),
        Some(present) if !context.owns(present) => {
            let message =
                format!("Failed to create the service {path}, another Service has this name");
            pass.warning("FailedToCreateService", message);
        }
        Some(present) if present["spec"]["selector"] != wanted["spec"]["selector"] => {
            update(pass, present, &wanted, &path);
        }
        Some(_) => {}
    }
}

fn create(pass: &mut Pass<'_>, wanted: Value, path: &str) {
    match pass.order(RayStep::Create(wanted)) {
        OrderOutcome::Done(_) => {
            pass.normal("CreatedService", format!("Created the service {path}"));
        }
        // Made by an earlier pass: the cache does not show it yet.
        OrderOutcome::Refused(refusal) if refusal.is_conflict() => {}
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to create the service {path}, {}", refusal.message);
            pass.warning("FailedToCreateService", message);
        }
        OrderOutcome::Pending => {}
    }
}

fn update(pass: &mut Pass<'_>, present: &Value, wanted: &Value, path: &str) {
    let patch = replacement(present, wanted);
    match pass.order(RayStep::Patch { target: ObjectTarget::of(present), patch }) {
        OrderOutcome::Done(_) => {
            pass.normal("UpdatedService", format!("Updated the service {path}"));
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to update the service {path}, {}", refusal.message);
            pass.warning("FailedToUpdateService", message);
        }
        OrderOutcome::Pending => {}
    }
}
