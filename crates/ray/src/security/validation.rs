//! What admission refuses of a RayCluster: an Ingress of its own, and changes of what the mutation added.

use crds::validation::{Errors, FieldError};
use serde_json::Value;

use super::{
    config::SecurityConfig,
    containers::PROXY_VOLUME,
    mutation::{additions_of, group_of, head_of, is_left_alone, is_secured, kept},
    object_names::ObjectNames,
    pod_additions::PodAdditions,
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
    if old.is_some_and(is_left_alone) {
        return errors;
    }
    let secured = old.filter(|old| is_secured(old));
    let config = &additions_of(secured, config);
    // Names of an update are those of before, so that they do not change with the annotation.
    let names = ObjectNames::of(secured.unwrap_or(cluster));
    let pods = pods(cluster, secured, &names, config);
    if config.oauth {
        errors.extend(check_proxy(cluster, &pods));
    }
    if config.mtls && old.is_some() {
        errors.extend(check_certificates(&pods));
    }
    errors
}

/// A pod of a RayCluster, and what must be in it.
struct CheckedPod<'a> {
    path: String,
    pod: &'a Value,
    wanted: PodAdditions,
}

/// The head, and the groups of workers.
fn pods<'a>(
    cluster: &'a Value,
    secured: Option<&Value>,
    names: &ObjectNames<'_>,
    config: &SecurityConfig,
) -> Vec<CheckedPod<'a>> {
    let head = PodAdditions::of_head(cluster, names, config);
    let head = CheckedPod {
        path: HEAD.to_owned(),
        pod: head_of(cluster),
        wanted: kept(head, secured.map(head_of)),
    };
    let groups = items(&cluster["spec"]["workerGroupSpecs"]).iter().enumerate();
    let groups = groups.map(|(at, group)| {
        let before = secured.and_then(|old| group_of(old, text(&group["groupName"])));
        CheckedPod {
            // Indexes stand between points, as CodeFlare writes them.
            path: format!("spec.workerGroupSpecs.{at}.template.spec"),
            pod: &group["template"]["spec"],
            wanted: kept(PodAdditions::of_workers(names, config), before),
        }
    });
    std::iter::once(head).chain(groups).collect()
}

/// Whether a cluster asks for an Ingress of its own, which has no authentication.
pub(crate) fn enables_ingress(cluster: &Value) -> bool {
    cluster["spec"]["headGroupSpec"]["enableIngress"] == true
}

fn check_proxy(cluster: &Value, pods: &[CheckedPod<'_>]) -> Errors {
    let Some(CheckedPod { path, pod, wanted }) = pods.first() else { return Errors::new() };
    let mut errors = Errors::new();
    let why = "OAuth Proxy container is immutable";
    errors.extend(check(
        &pod["containers"],
        &wanted.containers,
        &format!("{path}.containers"),
        why,
    ));
    let why = "OAuth Proxy TLS Secret volume is immutable";
    let volume = wanted.volumes.get(..1).unwrap_or_default();
    errors.extend(check(&pod["volumes"], volume, &format!("{path}.volumes"), why));
    let account = text(&head_of(cluster)["serviceAccountName"]);
    if wanted.account.as_deref() != Some(account) {
        let field = format!("{path}.serviceAccountName");
        let why = "RayCluster head group service account is immutable";
        errors.push(FieldError::invalid(field, account, why));
    }
    errors
}

/// In the order of CodeFlare: init containers of all pods, then variables, then volumes.
fn check_certificates(pods: &[CheckedPod<'_>]) -> Errors {
    let mut errors = Errors::new();
    for CheckedPod { path, pod, wanted } in pods {
        let (field, why) =
            (format!("{path}.initContainers"), "create-cert Init Container is immutable");
        errors.extend(check(&pod["initContainers"], &wanted.init_containers, &field, why));
    }
    for CheckedPod { path, pod, wanted } in pods {
        let (field, why) = (
            format!("{path}.containers.0.env"),
            "RAY_TLS related environment variables are immutable",
        );
        errors.extend(check(&pod["containers"][0]["env"], &wanted.env, &field, why));
    }
    for CheckedPod { path, pod, wanted } in pods {
        let why = "ca-vol and server-cert Secret volumes are immutable";
        let of_tls = wanted.volumes.iter().filter(|volume| volume["name"] != PROXY_VOLUME);
        let of_tls: Vec<Value> = of_tls.cloned().collect();
        errors.extend(check(&pod["volumes"], &of_tls, &format!("{path}.volumes"), why));
    }
    errors
}

/// The items of the wanted names must be the wanted ones.
fn check(list: &Value, wanted: &[Value], field: &str, why: &str) -> Errors {
    let found = wanted.iter().map(|wanted| (named(list, text(&wanted["name"])), wanted));
    let changed = found.filter(|(present, wanted)| *present != Some(*wanted));
    changed.map(|(present, _)| FieldError::invalid(field, present, why)).collect()
}
