//! The Ingress of the head's dashboard.
//!
//! Source: docs/reference/ray.md §3 "Other child objects".

use serde_json::{Value, json};

use super::{
    context::{ClusterContext, label_value, object_name},
    failure::Failure,
    services::dashboard_backend_port,
};
use crate::{
    json::{annotation, text, texts},
    names,
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
};

/// The Ingress, if the spec asks for it.
pub(crate) fn ingress_target(context: &ClusterContext<'_>) -> Option<ObjectTarget> {
    let is_wanted = context.spec.head_group_spec.enable_ingress == Some(true);
    is_wanted.then(|| ObjectTarget::of(&ingress(context)))
}

/// Makes the Ingress, or corrects it. An Ingress that is switched off stays.
pub(crate) fn reconcile_ingress(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Result<(), Failure> {
    if context.spec.head_group_spec.enable_ingress != Some(true) {
        return Ok(());
    }
    let wanted = ingress(context);
    let path = context.path(text(&wanted["metadata"]["name"]));
    let Some(present) = context.child("Ingress", text(&wanted["metadata"]["name"])) else {
        return match pass.order(RayStep::Create(wanted)) {
            OrderOutcome::Pending => Ok(()),
            OrderOutcome::Done(_) => {
                pass.normal("CreatedIngress", format!("Created ingress {path}"));
                Ok(())
            }
            OrderOutcome::Refused(refusal) => {
                let message = format!("Failed creating ingress {path}, {}", refusal.message);
                pass.warning("FailedToCreateIngress", message);
                Err(Failure::plain(refusal.message.clone()))
            }
        };
    };
    // An Ingress of the user is left alone, and is no error: the cluster works without one.
    if !context.owns(present) {
        let message = format!(
            "Ingress {path} already exists and is not owned by this RayCluster; not modifying it"
        );
        pass.warning("FailedToCreateIngress", message);
        return Ok(());
    }
    if is_equal(present, &wanted) {
        return Ok(());
    }
    update(pass, present, &wanted, &path)
}

fn update(pass: &mut Pass<'_>, present: &Value, wanted: &Value, path: &str) -> Result<(), Failure> {
    let spec = |name: &str| wanted["spec"].get(name).cloned().unwrap_or(Value::Null);
    let patch = json!({
        "metadata": {
            "labels": wanted["metadata"]["labels"],
            "annotations": wanted["metadata"]["annotations"],
        },
        "spec": {
            // A merge patch keeps what it does not name, so fields that go are set to null.
            "ingressClassName": spec("ingressClassName"),
            "rules": spec("rules"),
            "tls": spec("tls"),
        },
    });
    match pass.order(RayStep::Patch { target: ObjectTarget::of(present), patch }) {
        OrderOutcome::Pending => Ok(()),
        OrderOutcome::Done(_) => {
            pass.normal("UpdatedIngress", format!("Updated ingress {path}"));
            Ok(())
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to update ingress {path}, {}", refusal.message);
            pass.warning("FailedToUpdateIngress", message);
            Err(Failure::plain(refusal.message.clone()))
        }
    }
}

/// Labels and annotations of others are left alone.
fn is_equal(present: &Value, wanted: &Value) -> bool {
    let covers = |part: &str| {
        let present = texts(&present["metadata"][part]);
        texts(&wanted["metadata"][part]).iter().all(|(key, value)| present.get(key) == Some(value))
    };
    let same = |name: &str| present["spec"][name] == wanted["spec"][name];
    covers("labels")
        && covers("annotations")
        && ["ingressClassName", "rules", "tls"].into_iter().all(same)
}

fn ingress(context: &ClusterContext<'_>) -> Value {
    let options = context.spec.head_group_spec.ingress_options.clone().unwrap_or_default();
    let mut rule = json!({"http": {"paths": [{
        "path": options.path.unwrap_or_else(|| "/".to_owned()),
        "pathType": options.path_type.unwrap_or_else(|| "Prefix".to_owned()),
        "backend": {"service": {
            "name": context.head_service_name(),
            "port": {"number": dashboard_backend_port(context)},
        }},
    }]}});
    if let Some(host) = options.host.filter(|host| !host.is_empty()) {
        rule["host"] = json!(host);
    }
    let mut spec = json!({"rules": [rule]});
    if !options.tls.is_empty() {
        let tls = options.tls.iter().map(|one| {
            let mut tls = json!({});
            if !one.hosts.is_empty() {
                tls["hosts"] = json!(one.hosts);
            }
            if let Some(secret) = &one.secret_name {
                tls["secretName"] = json!(secret);
            }
            tls
        });
        spec["tls"] = tls.collect();
    }
    let class = annotation(context.cluster, names::INGRESS_CLASS);
    if !class.is_empty() {
        spec["ingressClassName"] = json!(class);
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata(context),
        "spec": spec,
    })
}

fn metadata(context: &ClusterContext<'_>) -> Value {
    let mut annotations = texts(&context.cluster["metadata"]["annotations"]);
    // The class is a field of the Ingress; the API server refuses the annotation beside it.
    annotations.remove(names::INGRESS_CLASS);
    // `kubectl apply` would take the RayCluster in it for the former Ingress.
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    let mut metadata = json!({
        "name": object_name(&format!("{}-head-ingress", context.name())),
        "namespace": context.namespace(),
        "labels": {
            names::CLUSTER_LABEL: context.name(),
            names::IDENTIFIER_LABEL: label_value(&format!("{}-head", context.name())),
            names::APP_NAME_LABEL: names::APPLICATION,
            names::CREATED_BY_LABEL: names::CREATED_BY,
        },
        "ownerReferences": [context.owner_reference()],
    });
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    metadata
}
