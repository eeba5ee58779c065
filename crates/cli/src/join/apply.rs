//! Reads and writes one object that is known as JSON.

use crds::names::SLUICECTL;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::Value;

use super::{
    JoinFailure,
    ownership::{ObjectAction, OtherHub, action},
};
use crate::requests::RequestFailure;

/// Kind and name of an object.
#[must_use]
pub fn identity(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// The objects of its kind.
#[must_use]
pub fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Reads what a wanted object meets, and changes nothing.
///
/// # Errors
/// If an object of another owner is in the way, or the request fails.
pub(super) async fn check(
    client: &Client,
    wanted: &Value,
    other_hub: OtherHub,
) -> Result<(), JoinFailure> {
    let failed = RequestFailure::of("get", identity(wanted));
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let existing = api_of(client, wanted).get_opt(name).await.map_err(failed)?;
    let known = existing.and_then(|existing| serde_json::to_value(existing).ok());
    Ok(action(wanted, known.as_ref(), other_hub).map(drop)?)
}

/// Makes the object, or makes it equal to what is wanted. Gives a line about what happened.
///
/// # Errors
/// If an object of another owner is in the way, or a request fails.
pub(super) async fn ensure(
    client: &Client,
    wanted: &Value,
    other_hub: OtherHub,
) -> Result<String, JoinFailure> {
    let (api, object) = (api_of(client, wanted), identity(wanted));
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let failed = RequestFailure::of("get", object.clone());
    let existing = api.get_opt(name).await.map_err(failed)?;
    let known = existing.as_ref().and_then(|existing| serde_json::to_value(existing).ok());
    if action(wanted, known.as_ref(), other_hub)? == ObjectAction::Keep {
        return Ok(format!("{object} kept"));
    }
    let params = PatchParams::apply(SLUICECTL).force();
    let failed = RequestFailure::of("apply", object.clone());
    let applied = api.patch(name, &params, &Patch::Apply(wanted)).await.map_err(failed)?;
    let before = existing.map(|existing| existing.metadata.resource_version);
    Ok(match before {
        None => format!("{object} created"),
        Some(version) if version == applied.metadata.resource_version => {
            format!("{object} unchanged")
        }
        Some(_) => format!("{object} changed"),
    })
}
