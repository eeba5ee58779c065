//! What admission refuses of a RayCluster: an Ingress of its own, and changes of what the mutation added.

use crds::validation::{Errors, FieldError};
use serde_json::Value;

use super::{
    config::SecurityConfig,
    containers::{
        head_create_cert, proxy, proxy_volume, tls_variables, tls_volumes, worker_create_cert,
    },
    object_names::ObjectNames,
};
use crate::json::{items, name, named, text};

/// Why a cluster may not make an Ingress.
pub(crate) const INGRESS_REFUSED: &str = "RayCluster with enableIngress set to true is not allowed";

const HEAD: &str = "spec.headGroupSpec.template.spec";

/// What is wrong with a RayCluster. `old` is the object before an update.
#[must_use]
pub fn validate(cluster: &Value, old: Option<&Value>, config: &SecurityConfig) -> Errors {
    // A cluster that goes must be able to lose its finalizers.
    if old.is_some() && !cluster["metadata"]["deletionTimestamp"].is_null() {
        return Errors::new();
    }
    let mut errors = Errors::new();
    if name(cluster).is_empty() {
        let why = "pods of a secured RayCluster refer to its name, so it cannot be generated";
        errors.push(FieldError::required("metadata.name", why));
        return errors;
    }
    if enables_ingress(cluster) {
        let field = "spec.headGroupSpec.enableIngress";
        errors.push(FieldError::invalid(field, true, INGRESS_REFUSED));
    }
    let names = ObjectNames::of(cluster);
    if config.oauth {
        errors.extend(check_proxy(cluster, &names, config));
    }
    if config.mtls && old.is_some() {
        errors.extend(check_certificates(cluster, &names, config));
    }
    errors
}

/// Whether a cluster asks for an Ingress of its own, which has no authentication.
pub(crate) fn enables_ingress(cluster: &Value) -> bool {
    cluster["spec"]["headGroupSpec"]["enableIngress"] == true
}

fn check_proxy(cluster: &Value, names: &ObjectNames<'_>, config: &SecurityConfig) -> Errors {
    let head = &cluster["spec"]["headGroupSpec"]["template"]["spec"];
    let mut errors = Errors::new();
    let containers = format!("{HEAD}.containers");
    let why = "OAuth Proxy container is immutable";
    errors.extend(check_item(&head["containers"], &proxy(names, config), containers, why));
    let volumes = format!("{HEAD}.volumes");
    let why = "OAuth Proxy TLS Secret volume is immutable";
    errors.extend(check_item(&head["volumes"], &proxy_volume(names), volumes, why));
    let account = text(&head["serviceAccountName"]);
    if account != names.proxy_account() {
        let field = format!("{HEAD}.serviceAccountName");
        let why = "RayCluster head group service account is immutable";
        errors.push(FieldError::invalid(field, account, why));
    }
    errors
}

/// In the order of CodeFlare: init containers of all pods, then variables, then volumes.
fn check_certificates(cluster: &Value, names: &ObjectNames<'_>, config: &SecurityConfig) -> Errors {
    let head = (
        HEAD.to_owned(),
        &cluster["spec"]["headGroupSpec"]["template"]["spec"],
        head_create_cert(cluster, names, config),
    );
    let groups = items(&cluster["spec"]["workerGroupSpecs"]).iter().enumerate();
    let groups = groups.map(|(at, group)| {
        // Indexes stand between points, as CodeFlare writes them.
        let path = format!("spec.workerGroupSpecs.{at}.template.spec");
        (path, &group["template"]["spec"], worker_create_cert(config))
    });
    let pods: Vec<(String, &Value, Value)> = std::iter::once(head).chain(groups).collect();
    let mut errors = Errors::new();
    for (path, pod, wanted) in &pods {
        let (field, why) =
            (format!("{path}.initContainers"), "create-cert Init Container is immutable");
        errors.extend(check_item(&pod["initContainers"], wanted, field, why));
    }
    for (path, pod, _) in &pods {
        let why = "RAY_TLS related environment variables are immutable";
        for variable in tls_variables() {
            let field = format!("{path}.containers.0.env");
            errors.extend(check_item(&pod["containers"][0]["env"], &variable, field, why));
        }
    }
    for volume in tls_volumes(names) {
        for (path, pod, _) in &pods {
            let why = "ca-vol and server-cert Secret volumes are immutable";
            errors.extend(check_item(&pod["volumes"], &volume, format!("{path}.volumes"), why));
        }
    }
    errors
}

/// The item of the wanted name must be the wanted one.
fn check_item(list: &Value, wanted: &Value, field: String, why: &str) -> Option<FieldError> {
    let present = named(list, text(&wanted["name"]));
    (present != Some(wanted)).then(|| FieldError::invalid(field, present, why))
}
