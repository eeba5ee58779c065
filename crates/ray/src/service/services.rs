//! The Services through which a RayService is reached: that of the head, and that of whatever serves.
//!
//! Their names stay the same; during a change of clusters their selectors switch.
//!
//! Source: docs/reference/ray.md §9.

use serde_json::{Value, json};

use super::context::{ServiceContext, Unfinished};
use crate::{
    cluster::{head_service_of, label_value, select_head, serve_ports_of},
    json::{field, name, named, object, text, texts},
    names,
    pass::{OrderOutcome, Pass},
    service_spec::replacement,
    step::{ObjectTarget, RayStep},
};

/// Lets both Services select a cluster.
pub(super) fn reconcile_services<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    cluster: &Value,
) -> Result<(), Unfinished> {
    let head = head_service(context, cluster).ok_or(Unfinished::Waiting)?;
    reconcile(context, pass, head)?;
    match serve_service(context, cluster) {
        Ok(serve) => reconcile(context, pass, serve),
        Err(why) => {
            let path = context.path(&names::serve_service_name(context.name()));
            let message = format!("Failed to create the service {path}, {why}");
            pass.warning("FailedToCreateService", message);
            Err(Unfinished::Waiting)
        }
    }
}

fn reconcile<'a>(
    context: &ServiceContext<'a>,
    pass: &mut Pass<'a>,
    wanted: Value,
) -> Result<(), Unfinished> {
    let path = context.path(name(&wanted));
    let selected = |service: &Value| service["spec"]["selector"][names::CLUSTER_LABEL].clone();
    match context.child("Service", name(&wanted)) {
        Some(present) if present["spec"]["selector"] == wanted["spec"]["selector"] => Ok(()),
        // Of an incremental upgrade: its owner is the cluster.
        Some(present) if !context.owns(present) && selected(present) == selected(&wanted) => Ok(()),
        Some(present) if !context.owns(present) => {
            let message =
                format!("Failed to update the service {path}, another Service has this name");
            pass.warning("FailedToUpdateService", message);
            Err(Unfinished::Waiting)
        }
        Some(present) => update(pass, present, &wanted, &path),
        None => create(pass, wanted, &path),
    }
}

fn create(pass: &mut Pass<'_>, wanted: Value, path: &str) -> Result<(), Unfinished> {
    match pass.order(RayStep::Create(wanted)) {
        OrderOutcome::Done(_) => {
            pass.normal("CreatedService", format!("Created the service {path}"));
            Ok(())
        }
        // Made by an earlier pass: the cache does not show it yet.
        OrderOutcome::Refused(refusal) if refusal.is_conflict() => Err(Unfinished::Waiting),
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to create the service {path}, {}", refusal.message);
            pass.warning("FailedToCreateService", message);
            Err(Unfinished::Waiting)
        }
        OrderOutcome::Pending => Err(Unfinished::Waiting),
    }
}

fn update(
    pass: &mut Pass<'_>,
    present: &Value,
    wanted: &Value,
    path: &str,
) -> Result<(), Unfinished> {
    let patch = replacement(present, wanted);
    match pass.order(RayStep::Patch { target: ObjectTarget::of(present), patch }) {
        OrderOutcome::Done(_) => {
            pass.normal("UpdatedService", format!("Updated the service {path}"));
            Ok(())
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to update the service {path}, {}", refusal.message);
            pass.warning("FailedToUpdateService", message);
            Err(Unfinished::Waiting)
        }
        OrderOutcome::Pending => Err(Unfinished::Waiting),
    }
}

/// The Service of the present head.
fn head_service(context: &ServiceContext<'_>, cluster: &Value) -> Option<Value> {
    let mut service = context.of_cluster(cluster, head_service_of)?;
    let own_name = names::head_service_name(context.name());
    let selector = field(field(&mut service, "spec"), "selector");
    if let Some(head) = context.head_pod(cluster) {
        select_head(selector, head);
    } else if let Some(present) = context.own("Service", &own_name)
        && present["spec"]["selector"][names::CLUSTER_LABEL] == name(cluster)
    {
        // Which labels the next head has shows with it.
        *selector = present["spec"]["selector"].clone();
    }
    let mut labels = context.origin_labels();
    labels[names::NODE_TYPE_LABEL] = json!("head");
    labels[names::IDENTIFIER_LABEL] = json!(label_value(&format!("{}-head", context.name())));
    let metadata = object(field(&mut service, "metadata"));
    metadata.insert("name".to_owned(), json!(own_name));
    metadata.insert("namespace".to_owned(), json!(context.namespace()));
    metadata.insert("labels".to_owned(), labels);
    metadata.insert("ownerReferences".to_owned(), json!([context.owner_reference()]));
    Some(service)
}

/// The name of the serve Service of an object, if its own spec gives it none.
pub(super) fn serve_service_name(given: &str, of: &str) -> String {
    if given.is_empty() { names::serve_service_name(of) } else { given.to_owned() }
}

/// The Service of the pods of a cluster that serve. Of an incremental upgrade each cluster has one of its own.
///
/// # Errors
/// There is no port for Serve.
pub(super) fn serve_service(
    context: &ServiceContext<'_>,
    cluster: &Value,
) -> Result<Value, &'static str> {
    let is_incremental = context.is_incremental();
    let of = if is_incremental { name(cluster) } else { context.name() };
    let given = context.spec.serve_service.as_ref().filter(|_| !is_incremental);
    let mut service = given.cloned().unwrap_or_else(|| json!({}));
    let mut labels = json!(texts(&service["metadata"]["labels"]));
    labels[names::ORIGIN_KIND_LABEL] = json!("RayService");
    labels[names::ORIGIN_NAME_LABEL] = json!(of);
    labels[names::SERVE_LABEL] = json!(label_value(&format!("{of}-serve")));
    let annotations = texts(&service["metadata"]["annotations"]);
    let owner = if is_incremental {
        context.of_cluster(cluster, |it| it.owner_reference())
    } else {
        Some(context.owner_reference())
    };
    let mut metadata = json!({
        "name": serve_service_name(name(&service), of),
        "namespace": context.namespace(),
        "labels": labels,
        "ownerReferences": [owner],
    });
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let ports = serve_ports(context, cluster, &service)?;
    let spec = field(&mut service, "spec");
    *field(spec, "ports") = ports;
    // Users cannot change what is selected: it is the present cluster.
    *field(spec, "selector") =
        json!({names::CLUSTER_LABEL: name(cluster), names::SERVE_LABEL: "true"});
    let kind = context.spec.ray_cluster_config.head_group_spec.service_type.as_str();
    if text(&spec["type"]).is_empty() {
        *field(spec, "type") = json!(if kind.is_empty() { "ClusterIP" } else { kind });
    }
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": service["spec"],
    }))
}

/// The ports of the head for Serve; else that of the given Service.
fn serve_ports(
    context: &ServiceContext<'_>,
    cluster: &Value,
    given: &Value,
) -> Result<Value, &'static str> {
    let of_head = context.of_cluster(cluster, serve_ports_of).ok_or("the cluster is invalid")?;
    if !of_head.is_empty() {
        return Ok(of_head.into());
    }
    let given = named(&given["spec"]["ports"], "serve").map(|given| &given["port"]);
    let port = |port: &Value| json!([{"name": "serve", "protocol": "TCP", "port": port, "targetPort": port}]);
    given.map(port).ok_or("the head has no port that is named serve")
}
