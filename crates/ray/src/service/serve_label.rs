//! The label of a head that says whether it serves.
//!
//! The readiness probe of a worker asks its proxy; that of a head cannot, so the operator asks and sets the label. The Service for Serve
//! selects by it.
//!
//! Source: docs/reference/ray.md §9.

use serde_json::{Value, json};

use super::context::{ServiceContext, Unfinished};
use crate::{
    cluster::head_service_port,
    head::{HeadMethod, HeadRequest, is_success},
    json::{items, label, name},
    names,
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
};

/// The port of Serve, if the head names none.
const SERVE_PORT: i64 = 8000;

/// Sets the label of the head of a cluster. A suspended cluster has none, and neither has one with a head that is being replaced.
pub(super) fn reconcile_serve_label(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    cluster: &Value,
) -> Result<(), Unfinished> {
    let Some(head) = context.head_pod(cluster) else { return Ok(()) };
    let serves =
        !context.spec.exclude_head_pod_from_serve_svc && is_healthy(context, pass, cluster, head)?;
    let wanted = serves.to_string();
    if label(head, names::SERVE_LABEL) == wanted {
        return Ok(());
    }
    let path = context.path(name(head));
    let patch = json!({"metadata": {"labels": {names::SERVE_LABEL: wanted}}});
    match pass.order(RayStep::Patch { target: ObjectTarget::of(head), patch }) {
        OrderOutcome::Done(_) => {
            let message = format!("Updated the serve label to {wanted:?} for the Head Pod {path}");
            pass.normal("UpdatedHeadPodServeLabel", message);
            Ok(())
        }
        OrderOutcome::Refused(refusal) => {
            let why = &refusal.message;
            let message = format!(
                "Failed to update the serve label to {wanted:?} for the Head Pod {path}: {why}"
            );
            pass.warning("FailedToUpdateHeadPodServeLabel", message);
            Err(Unfinished::Waiting)
        }
        OrderOutcome::Pending => Err(Unfinished::Waiting),
    }
}

/// Asks the proxy of a head. The address is that of its Service, because heads are asked at Services of their namespace only.
fn is_healthy(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    cluster: &Value,
    head: &Value,
) -> Result<bool, Unfinished> {
    if head["status"]["phase"] != "Running" {
        return Ok(false);
    }
    let ports = items(&head["spec"]["containers"][0]["ports"]);
    let port = ports.iter().find(|port| port["name"] == "serve");
    let port = port.and_then(|port| port["containerPort"].as_i64()).unwrap_or(SERVE_PORT);
    let address = context.of_cluster(cluster, |it| {
        let port = head_service_port(it, "serve", port).unwrap_or(port);
        format!("{}:{port}", it.head_address())
    });
    let url = format!("http://{}/-/healthz", address.ok_or(Unfinished::Waiting)?);
    let request = HeadRequest { method: HeadMethod::Get, url, body: None, token_secret: None };
    pass.ask(request).map(is_success).ok_or(Unfinished::Waiting)
}
