//! The Services of a cluster: of the head, of its Serve applications, and the headless one of groups with several hosts.
//!
//! Source: docs/reference/ray.md §3 "Other child objects".

use serde_json::{Value, json};

use super::{
    context::{ClusterContext, label_value},
    failure::Failure,
};
use crate::{
    json::{
        field, is_terminating, items, label, list, merge_patch, name, named, object, text, texts,
    },
    names,
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
};

const DEFAULT_PORTS: &[(&str, u16)] = &[
    ("client", 10001),
    ("dashboard", 8265),
    ("gcs-server", 6379),
    ("metrics", 8080),
    ("serve", 8000),
];

/// Why the dashboard of a head cannot be reached, as the official operator logs it.
const NO_DASHBOARD_PORT: &str = "dashboard port is not found";

/// Makes the Services that are missing. Services that exist are left as they are, but for the selector of the head's: one that selects
/// another pod than the head is of an earlier version, or was changed by hand, and the cluster cannot be reached by it.
pub(crate) fn reconcile_services(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Result<(), Failure> {
    // By labels and not by name, because the spec may name the Service.
    let heads = context.of_kind("Service").filter(|service| is_head_service(context, service));
    match heads.collect::<Vec<_>>()[..] {
        [] => create(context, pass, annotated_head_service(context))?,
        [present] => mend_selector(context, pass, present),
        ref several => {
            return Err(Failure::plain(format!(
                "{} head services of cluster {}",
                several.len(),
                context.path(context.name())
            )));
        }
    }
    let several_hosts =
        context.spec.worker_group_specs.iter().any(|group| group.num_of_hosts > Some(1));
    let headless = format!("{}-headless", context.name());
    if several_hosts && context.child("Service", &headless).is_none() {
        create(context, pass, headless_service(context, &headless))?;
    }
    reconcile_serve_service(context, pass)
}

pub(crate) fn is_head_service(context: &ClusterContext<'_>, service: &Value) -> bool {
    label(service, names::CLUSTER_LABEL) == context.name()
        && label(service, names::NODE_TYPE_LABEL) == "head"
}

fn create(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    service: Value,
) -> Result<(), Failure> {
    let path = context.path(name(&service));
    if create_silently(context, pass, service)? {
        pass.normal("CreatedService", format!("Created service {path}"));
    }
    Ok(())
}

/// Creates a Service without an event of its success. Returns whether it was made.
fn create_silently(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    service: Value,
) -> Result<bool, Failure> {
    let path = context.path(name(&service));
    match pass.order(RayStep::Create(service)) {
        OrderOutcome::Pending => Ok(false),
        OrderOutcome::Done(_) => Ok(true),
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed creating service {path}, {}", refusal.message);
            pass.warning("FailedToCreateService", message);
            Err(Failure::plain(refusal.message.clone()))
        }
    }
}

/// Lets the present Service of the head select the head that is there. That of another controller is left alone, and one without a
/// selector has endpoints of its own. A failure is an event only: it must not hold back the pods.
fn mend_selector(context: &ClusterContext<'_>, pass: &mut Pass<'_>, present: &Value) {
    let (selector, wanted) =
        (&present["spec"]["selector"], &head_service(context)["spec"]["selector"]);
    let may_mend =
        context.owns(present) && !selector.is_null() && !context.children.heads.is_empty();
    let change = merge_patch(selector, wanted).filter(|_| may_mend);
    let Some(change) = change else { return };
    let path = context.path(name(present));
    let patch = json!({"spec": {"selector": change}});
    match pass.order(RayStep::Patch { target: ObjectTarget::of(present), patch }) {
        OrderOutcome::Pending => {}
        OrderOutcome::Done(_) => {
            pass.normal("UpdatedService", format!("Updated the service {path}"));
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to update the service {path}, {}", refusal.message);
            pass.warning("FailedToUpdateService", message);
        }
    }
}

fn head_labels(context: &ClusterContext<'_>) -> Value {
    let template = texts(&context.spec.head_group_spec.template["metadata"]["labels"]);
    let application = template.get(names::APP_NAME_LABEL);
    json!({
        names::CLUSTER_LABEL: context.name(),
        names::NODE_TYPE_LABEL: "head",
        names::IDENTIFIER_LABEL: label_value(&format!("{}-head", context.name())),
        names::APP_NAME_LABEL: application.map_or(names::APPLICATION, String::as_str),
        names::CREATED_BY_LABEL: names::CREATED_BY,
    })
}

/// The Service of the head, with the annotations of the cluster for it.
fn annotated_head_service(context: &ClusterContext<'_>) -> Value {
    let mut service = head_service(context);
    let annotations = &context.spec.head_service_annotations;
    if !annotations.is_empty() {
        merge(field(field(&mut service, "metadata"), "annotations"), &json!(annotations));
    }
    service
}

/// The Service of the head. Those of a RayJob and a RayService are made of it.
pub(crate) fn head_service(context: &ClusterContext<'_>) -> Value {
    let group = &context.spec.head_group_spec;
    let labels = head_labels(context);
    let mut service = match &group.head_service {
        Some(given) => given_head_service(context, given),
        None => generated_head_service(context),
    };
    // Over those of the spec: the Service is found by these labels.
    merge(field(field(&mut service, "metadata"), "labels"), &labels);
    *field(field(&mut service, "spec"), "selector") = head_selector(context, labels);
    service
}

/// The selector of the head: the default labels alone, with the values of the pod of the head.
///
/// A selector of the spec is replaced, since the pod of the head need not have its labels. The group and its template may set some of
/// the default labels to other values.
fn head_selector(context: &ClusterContext<'_>, default_labels: Value) -> Value {
    let group = &context.spec.head_group_spec;
    let template = texts(&group.template["metadata"]["labels"]);
    let mut selector = default_labels;
    for key in [names::IDENTIFIER_LABEL, names::APP_NAME_LABEL, names::CREATED_BY_LABEL] {
        if let Some(value) = group.labels.get(key).or_else(|| template.get(key)) {
            selector[key] = json!(value);
        }
    }
    let heads = context.children.heads.iter().copied();
    if let Some(head) = heads.min_by_key(|head| is_terminating(head)) {
        select_head(&mut selector, head);
    }
    selector
}

/// Gives a selector the labels of the present head. It may be older than the spec of its cluster, and a Service must not lose it.
pub(crate) fn select_head(selector: &mut Value, head: &Value) {
    for key in [names::IDENTIFIER_LABEL, names::APP_NAME_LABEL, names::CREATED_BY_LABEL] {
        // A label that was removed by hand is put back.
        if let Some(value) = head["metadata"]["labels"].get(key) {
            *field(selector, key) = value.clone();
        }
    }
}

/// Writes entries of one object into another one.
fn merge(target: &mut Value, entries: &Value) {
    for (key, value) in entries.as_object().into_iter().flatten() {
        *field(target, key) = value.clone();
    }
}

fn generated_head_service(context: &ClusterContext<'_>) -> Value {
    let wanted = context.spec.head_group_spec.service_type.as_str();
    let kind = if wanted.is_empty() { "ClusterIP" } else { wanted };
    let mut spec = json!({"type": kind, "ports": head_ports(context)});
    if kind == "ClusterIP" && !context.settings.head_cluster_ip_service {
        spec["clusterIP"] = json!("None");
        // Ray's nodes find each other before they are ready.
        spec["publishNotReadyAddresses"] = json!(true);
    }
    service(context, &context.head_service_name(), &spec)
}

/// A Service of the spec, with the ports of the head that it does not name.
fn given_head_service(context: &ClusterContext<'_>, given: &Value) -> Value {
    let mut spec = given["spec"].clone();
    set_type(context, &mut spec);
    let more: Vec<Value> = head_ports(context)
        .into_iter()
        // The API server refuses two ports of one name, so a port of the spec replaces the default.
        .filter(|port| named(&spec["ports"], text(&port["name"])).is_none())
        .collect();
    list(&mut spec, "ports").extend(more);
    let mut service = service(context, &context.head_service_name(), &spec);
    for part in ["labels", "annotations"] {
        if !texts(&given["metadata"][part]).is_empty() {
            service["metadata"][part] = json!(texts(&given["metadata"][part]));
        }
    }
    service
}

/// The type of a Service that names none is that of the head's group. Without one it is left to the API server.
fn set_type(context: &ClusterContext<'_>, spec: &mut Value) {
    let kind = context.spec.head_group_spec.service_type.as_str();
    if text(&spec["type"]).is_empty() && !kind.is_empty() {
        *field(spec, "type") = json!(kind);
    }
}

fn service(context: &ClusterContext<'_>, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": context.namespace(),
            "ownerReferences": [context.owner_reference()],
        },
        "spec": spec,
    })
}

/// The ports of the head's Ray container, or the default ones; always one for metrics.
fn head_ports(context: &ClusterContext<'_>) -> Vec<Value> {
    let mut ports: Vec<(String, i64)> = container_ports(context);
    if ports.is_empty() {
        ports =
            DEFAULT_PORTS.iter().map(|(name, port)| ((*name).to_owned(), (*port).into())).collect();
    }
    if !ports.iter().any(|(name, _)| name == "metrics") {
        ports.push(("metrics".to_owned(), 8080));
    }
    ports.sort();
    ports.dedup_by(|a, b| a.0 == b.0);
    let port = |(name, port): (String, i64)| json!({"name": name, "protocol": "TCP", "appProtocol": "tcp", "port": port, "targetPort": port});
    ports.into_iter().map(port).collect()
}

fn ray_container<'a>(context: &ClusterContext<'a>) -> &'a Value {
    &context.spec.head_group_spec.template["spec"]["containers"][0]
}

/// The ports of the head's Ray container; one without a name gets one, for its Service.
fn container_ports(context: &ClusterContext<'_>) -> Vec<(String, i64)> {
    let container = ray_container(context);
    let port = |port: &Value| {
        let number = port["containerPort"].as_i64()?;
        let name = text(&port["name"]);
        let unnamed = || format!("{number}-port");
        Some((if name.is_empty() { unnamed() } else { name.to_owned() }, number))
    };
    items(&container["ports"]).iter().filter_map(port).collect()
}

/// The number of the dashboard's port in the pod of the head.
pub(crate) fn dashboard_port(context: &ClusterContext<'_>) -> i64 {
    let ports = container_ports(context);
    ports.into_iter().find(|(name, _)| name == "dashboard").map_or(8265, |(_, port)| port)
}

/// The port at which a client reaches a port of the head by the head's Service, if it does. A Service without an address leads to the pod
/// itself.
pub(crate) fn head_service_port(
    context: &ClusterContext<'_>,
    name: &str,
    of_pod: i64,
) -> Option<i64> {
    let spec = &head_service(context)["spec"];
    if spec["clusterIP"] == "None" {
        return Some(of_pod);
    }
    port_to(context, &spec["ports"], name, of_pod)
}

/// The number that the port of the dashboard has in the head's Service. An Ingress names it, whatever the address of the Service.
pub(crate) fn dashboard_backend_port(context: &ClusterContext<'_>) -> i64 {
    let of_pod = dashboard_port(context);
    let ports = &head_service(context)["spec"]["ports"];
    port_to(context, ports, "dashboard", of_pod).unwrap_or(of_pod)
}

/// The port of a Service with this name, else one that leads to a port of the head.
fn port_to(context: &ClusterContext<'_>, ports: &Value, name: &str, of_pod: i64) -> Option<i64> {
    let leading = || items(ports).iter().find(|port| leads_to(context, port, of_pod));
    named(ports, name).or_else(leading).and_then(|port| port["port"].as_i64())
}

/// Whether a port of the head's Service leads to a port of the head, whatever their names are.
fn leads_to(context: &ClusterContext<'_>, port: &Value, of_pod: i64) -> bool {
    let target = match &port["targetPort"] {
        Value::String(name) if !name.is_empty() => {
            let port = named(&ray_container(context)["ports"], name);
            port.and_then(|port| port["containerPort"].as_i64())
        }
        // As for the API server, 0 and an empty name are no target.
        target => target.as_i64().filter(|it| *it != 0).or_else(|| port["port"].as_i64()),
    };
    matches!(text(&port["protocol"]), "" | "TCP") && target == Some(of_pod)
}

/// `host:port` of the head's dashboard.
///
/// # Errors
/// The Service of the head does not lead to it.
pub(crate) fn dashboard_address(context: &ClusterContext<'_>) -> Result<String, &'static str> {
    let port = head_service_port(context, "dashboard", dashboard_port(context));
    let port = port.ok_or(NO_DASHBOARD_PORT)?;
    Ok(format!("{}:{port}", context.head_address()))
}

/// The number of the head's port that is named `serve`, or the default one.
pub(crate) fn serve_port(context: &ClusterContext<'_>) -> i64 {
    let ports = container_ports(context);
    ports.into_iter().find(|(name, _)| name == "serve").map_or(8000, |(_, port)| port)
}

/// The ports of the head that are named `serve` or begin with `serve-`, or the default one. None if the head names ports, and none of them
/// so.
pub(crate) fn serve_ports(context: &ClusterContext<'_>) -> Vec<Value> {
    let is_serve = |port: &Value| {
        let name = text(&port["name"]);
        name == "serve" || name.starts_with("serve-")
    };
    let mut ports: Vec<Value> = head_ports(context).into_iter().filter(is_serve).collect();
    for port in &mut ports {
        // As recorded, only the Service of the head names the protocol.
        object(port).remove("appProtocol");
    }
    ports
}

fn headless_service(context: &ClusterContext<'_>, name: &str) -> Value {
    let mut service = service(
        context,
        name,
        &json!({
            "clusterIP": "None",
            "type": "ClusterIP",
            "publishNotReadyAddresses": true,
            "selector": {names::CLUSTER_LABEL: context.name(), names::NODE_TYPE_LABEL: "worker"},
        }),
    );
    service["metadata"]["labels"] = json!({names::HEADLESS_LABEL: context.name()});
    service
}

/// The Service for Serve applications, if the annotation asks for it.
pub(crate) fn serve_service_target(context: &ClusterContext<'_>) -> Option<ObjectTarget> {
    serve_service_name(context).map(|name| ObjectTarget::named("v1", "Service", name))
}

fn serve_service_name(context: &ClusterContext<'_>) -> Option<String> {
    let annotation = crate::json::annotation(context.cluster, names::ENABLE_SERVE_SERVICE);
    // At most 63 characters, because the name of a cluster has at most 53.
    (annotation == "true").then(|| names::serve_service_name(context.name()))
}

/// Makes the Service for Serve applications.
///
/// Without a port for Serve there is nothing to make; the official operator then makes no pods either.
fn reconcile_serve_service(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Result<(), Failure> {
    let Some(name) = serve_service_name(context) else { return Ok(()) };
    if context.child("Service", &name).is_some() {
        return Ok(());
    }
    let ports = serve_ports(context);
    if ports.is_empty() {
        let message = format!(
            "RayCluster {} asks for a serve service, but its head has no port that is named serve or begins with serve-",
            context.path(context.name())
        );
        pass.warning("FailedToCreateService", message);
        return Ok(());
    }
    let selector = json!({names::CLUSTER_LABEL: context.name()});
    let mut spec = json!({"ports": ports, "selector": selector});
    set_type(context, &mut spec);
    let mut service = service(context, &name, &spec);
    service["metadata"]["labels"] = json!({
        names::ORIGIN_NAME_LABEL: context.name(),
        names::ORIGIN_KIND_LABEL: "RayCluster",
        names::SERVE_LABEL: label_value(&format!("{}-serve", context.name())),
    });
    // As recorded, this Service has no event.
    create_silently(context, pass, service)?;
    Ok(())
}
