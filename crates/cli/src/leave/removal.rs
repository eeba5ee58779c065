//! Removes one object that `join` made.

use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Preconditions},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    join::{api_of, identity, is_joined},
    requests::RequestFailure,
};
use crds::names::{SLUICECTL, annotations::JOINED_HUB, labels::MANAGED_BY};

/// Kinds of the objects on a worker, in the order of their removal: rights before the account.
const OF_WORKER: [(&str, &str, &str); 9] = [
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("", "v1", "Secret"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "Namespace"),
];

/// Kinds that keep a namespace.
const KEEP_NAMESPACE: [(&str, &str, &str); 11] = [
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "Service"),
    ("", "v1", "PersistentVolumeClaim"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("batch", "v1", "CronJob"),
    ("batch", "v1", "Job"),
];

/// Objects that every namespace has.
const IN_EVERY_NAMESPACE: [&str; 2] = ["default", "kube-root-ca.crt"];

/// Removes an object of the manager cluster, if it exists and `join` made it. Gives a line about what happened.
///
/// # Errors
/// If a request fails.
pub(super) async fn remove_joined(
    client: &Client,
    object: &Value,
) -> Result<Option<String>, RequestFailure> {
    let (api, identity) = (api_of(client, object), identity(object));
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let failed = RequestFailure::of("get", identity.clone());
    let Some(found) = api.get_opt(name).await.map_err(failed)? else {
        return Ok(None);
    };
    if !serde_json::to_value(&found).is_ok_and(|found| is_joined(&found)) {
        return Ok(Some(format!("{identity} kept: join did not make it")));
    }
    delete(&api, &found, &identity).await?;
    Ok(Some(format!("{identity} deleted")))
}

/// Removes what `join` made on a worker for this manager cluster. Gives a line about each object.
///
/// # Errors
/// If a request fails.
pub(super) async fn remove_from_worker(
    client: &Client,
    hub_uid: &str,
) -> Result<Vec<String>, RequestFailure> {
    let mut lines = Vec::new();
    for kind in OF_WORKER {
        for object in joined(client, kind, hub_uid).await? {
            let text = json!({"apiVersion": api_version(kind), "kind": kind.2,
                "metadata": {"name": object.metadata.name, "namespace": object.metadata.namespace}});
            let (identity, api) = (identity(&text), api_of(client, &text));
            if kind.2 == "Namespace" && !is_empty(client, object.metadata.name.as_deref()).await? {
                lines.push(format!("{identity} kept: it holds other objects"));
                continue;
            }
            delete(&api, &object, &identity).await?;
            lines.push(format!("{identity} deleted"));
        }
    }
    Ok(lines)
}

fn api_version((group, version, _): (&str, &str, &str)) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Objects of a kind that `join` made for a manager cluster.
async fn joined(
    client: &Client,
    kind: (&str, &str, &str),
    hub_uid: &str,
) -> Result<Vec<DynamicObject>, RequestFailure> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.0, kind.1, kind.2));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let labelled = ListParams::default().labels(&format!("{MANAGED_BY}={SLUICECTL}"));
    let listed = api.list(&labelled).await.map_err(RequestFailure::of("list", kind.2))?;
    let own = |object: &DynamicObject| {
        let annotations = object.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(JOINED_HUB)).is_some_and(|uid| uid == hub_uid)
    };
    Ok(listed.items.into_iter().filter(own).collect())
}

/// Whether a namespace has only what every namespace has.
async fn is_empty(client: &Client, namespace: Option<&str>) -> Result<bool, RequestFailure> {
    let namespace = namespace.unwrap_or_default();
    for (group, version, kind) in KEEP_NAMESPACE {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let failed = RequestFailure::of("list", format!("{kind} of namespace {namespace}"));
        let listed = api.list_metadata(&ListParams::default()).await.map_err(failed)?;
        let mut names = listed.items.into_iter().filter_map(|object| object.metadata.name);
        if names.any(|name| !IN_EVERY_NAMESPACE.contains(&name.as_str())) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes the object that was read, and no later one of its name.
async fn delete(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    identity: &str,
) -> Result<(), RequestFailure> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let uid = object.metadata.uid.clone();
    let params =
        DeleteParams::default().preconditions(Preconditions { uid, resource_version: None });
    match api.delete(&name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(RequestFailure::of("delete", identity)(error)),
    }
}
