//! The Gateway and the HTTPRoute of an incremental upgrade, and the Service of each cluster behind them.
//!
//! Source: docs/reference/ray.md §9.

use serde_json::{Value, json};

use super::{
    context::{ServiceContext, Unfinished},
    incremental::{TrafficSplit, next_traffic, options},
    services::serve_service,
    state::ServiceState,
};
use crate::{
    cluster::serve_port,
    conditions_of,
    json::{covers, items, name, text},
    names,
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
};

pub(super) const API: &str = "gateway.networking.k8s.io/v1";
const GROUP: &str = "gateway.networking.k8s.io";

/// What events say of an object.
struct RouteReasons {
    created: (&'static str, &'static str),
    updated: (&'static str, &'static str),
    kind: &'static str,
    /// What was not made.
    refused: &'static str,
}

const GATEWAY: RouteReasons = RouteReasons {
    created: ("CreatedGateway", "FailedToCreateGateway"),
    updated: ("UpdatedGateway", "FailedToUpdateGateway"),
    kind: "Gateway",
    refused: "Gateway",
};

const HTTP_ROUTE: RouteReasons = RouteReasons {
    created: ("CreatedHTTPRoute", "FailedToCreateHTTPRoute"),
    updated: ("UpdatedHTTPRoute", "FailedToUpdateHTTPRoute"),
    kind: "HTTPRoute",
    refused: "the HTTPRoute",
};

/// Whether the Gateway and its route are accepted by their controller.
pub(super) fn are_ready(context: &ServiceContext<'_>) -> bool {
    let gateway = context.own("Gateway", &names::gateway_name(context.name()));
    let gateway = gateway.filter(|gateway| {
        ["Accepted", "Programmed"].iter().all(|kind| conditions_of::is_true(gateway, kind))
    });
    let (Some(gateway), Some(route)) =
        (gateway, context.own("HTTPRoute", &names::route_name(context.name())))
    else {
        return false;
    };
    let parents = items(&route["status"]["parents"]).iter();
    parents.into_iter().any(|parent| {
        let is_true = |kind: &&str| {
            let conditions = items(&parent["conditions"]).iter();
            conditions.into_iter().any(|it| it["type"] == **kind && it["status"] == "True")
        };
        text(&parent["parentRef"]["name"]) == name(gateway)
            && ["Accepted", "ResolvedRefs"].iter().all(is_true)
    })
}

/// Makes the Service of a cluster. Like the official operator it publishes no event about it.
pub(super) fn reconcile_cluster_service<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    cluster: &Value,
) -> Result<(), Unfinished> {
    let Ok(service) = serve_service(context, cluster) else { return Err(Unfinished::Waiting) };
    if context.child("Service", name(&service)).is_some() {
        return Ok(());
    }
    match pass.order(RayStep::Create(service)) {
        OrderOutcome::Done(_) => Ok(()),
        OrderOutcome::Refused(refusal) if refusal.is_conflict() => Ok(()),
        OrderOutcome::Refused(_) | OrderOutcome::Pending => Err(Unfinished::Waiting),
    }
}

/// Makes the Gateway, or corrects it.
pub(super) fn reconcile_gateway<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
) -> Result<(), Unfinished> {
    let class = options(context).map_or("", |options| &options.gateway_class_name);
    let spec = json!({
        "gatewayClassName": class,
        "listeners": [{
            "name": "http",
            "port": 80,
            "protocol": "HTTP",
            "allowedRoutes": {"namespaces": {"from": "Same"}},
        }],
    });
    reconcile(context, pass, &names::gateway_name(context.name()), &spec, &GATEWAY).map(|_| ())
}

/// Makes the route, or moves its traffic. Returns the parts of the traffic as they are stored; `None` without an active
/// cluster.
pub(super) fn reconcile_route<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    state: &ServiceState,
    takes_traffic: bool,
) -> Result<Option<TrafficSplit>, Unfinished> {
    let Some(active) = context.cluster(&state.active.cluster) else { return Ok(None) };
    let pending = context.cluster(&state.pending.cluster);
    let split = next_traffic(context, state, takes_traffic);
    let mut backends = vec![backend(context, active, split.active)];
    backends.extend(pending.map(|cluster| backend(context, cluster, split.pending)));
    let spec = json!({
        "parentRefs": [{
            "group": GROUP,
            "kind": "Gateway",
            "name": names::gateway_name(context.name()),
            "namespace": context.namespace(),
        }],
        "rules": [{
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
            "backendRefs": backends,
        }],
    });
    reconcile(context, pass, &names::route_name(context.name()), &spec, &HTTP_ROUTE)?;
    Ok(Some(split))
}

fn backend(context: &ServiceContext<'_>, cluster: &Value, weight: i32) -> Value {
    json!({
        "group": "",
        "kind": "Service",
        "name": names::serve_service_name(name(cluster)),
        "namespace": context.namespace(),
        "port": context.of_cluster(cluster, serve_port),
        "weight": weight,
    })
}

fn reconcile<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    wanted: &str,
    spec: &Value,
    reasons: &RouteReasons,
) -> Result<(), Unfinished> {
    let kind = reasons.kind;
    let path = context.path(wanted);
    let present = context.child(kind, wanted);
    let fail = |pass: &mut Pass<'_>, why: &str| {
        let message = format!("Failed to create {} for RayService {path}: {why}", reasons.refused);
        pass.warning(reasons.created.1, message);
        Err(Unfinished::Waiting)
    };
    let step = match present {
        Some(present) if !context.owns(present) => {
            return fail(pass, &format!("another {kind} has this name"));
        }
        Some(present) if covers(&present["spec"], spec) => return Ok(()),
        Some(present) => {
            RayStep::Patch { target: ObjectTarget::of(present), patch: json!({"spec": spec}) }
        }
        None => RayStep::Create(json!({
            "apiVersion": API,
            "kind": kind,
            "metadata": {
                "name": wanted,
                "namespace": context.namespace(),
                "ownerReferences": [context.owner_reference()],
            },
            "spec": spec,
        })),
    };
    match (pass.order(step), present) {
        (OrderOutcome::Done(_), Some(_)) => {
            pass.normal(reasons.updated.0, format!("Updated the {kind} {path}"));
            Ok(())
        }
        (OrderOutcome::Done(_), None) => {
            pass.normal(reasons.created.0, format!("Created {kind} for RayService {path}"));
            Ok(())
        }
        (OrderOutcome::Refused(refusal), Some(_)) => {
            let message = format!("Failed to update the {kind} {path}: {}", refusal.message);
            pass.warning(reasons.updated.1, message);
            Err(Unfinished::Waiting)
        }
        (OrderOutcome::Refused(refusal), None) => fail(pass, &refusal.message),
        (OrderOutcome::Pending, _) => Err(Unfinished::Waiting),
    }
}
