//! Objects that a pass reads before its decision, since no watch shows them.

use appwrapper::{component_name, names::RESOURCES_DEPLOYED};
use ray::{names, step::RayTarget};
use runtime::watch::ApiResource;
use serde_json::Value;

use super::resources::route_kinds;

/// An object that a pass reads before its decision.
pub(super) struct UnwatchedObject {
    pub(super) target: RayTarget,
    /// Whether the status of the operated object says that it was made.
    pub(super) is_made: bool,
}

/// Those of an operated object: components of an AppWrapper are of any kind, and routes of a RayService bear no label.
pub(super) fn unwatched_objects(parent: &Value) -> Vec<UnwatchedObject> {
    let mut objects = components(parent);
    objects.extend(routes(parent));
    objects
}

/// The objects of the components of an AppWrapper; none of another kind.
fn components(parent: &Value) -> Vec<UnwatchedObject> {
    if parent["kind"] != "AppWrapper" {
        return Vec::new();
    }
    let components = parent["spec"]["components"].as_array().into_iter().flatten();
    let object = |(index, component): (usize, &Value)| {
        let template = &component["template"];
        let name = component_name(parent, index, template);
        let target = RayTarget { name, ..RayTarget::of(template) };
        let is_made = is_deployed(&parent["status"]["componentStatus"][index]);
        UnwatchedObject { target, is_made }
    };
    components.enumerate().map(object).collect()
}

fn is_deployed(component: &Value) -> bool {
    let mut conditions = component["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == RESOURCES_DEPLOYED && it["status"] == "True")
}

/// The Gateway and the HTTPRoute of a RayService with incremental upgrades; none of another object.
fn routes(parent: &Value) -> impl Iterator<Item = UnwatchedObject> {
    let is_incremental = parent["kind"] == "RayService"
        && parent["spec"]["upgradeStrategy"]["type"] == names::INCREMENTAL_UPGRADE;
    let name = parent["metadata"]["name"].as_str().unwrap_or_default();
    let kinds = route_kinds().into_iter().zip(["gateway", "httproute"]);
    let object = move |(resource, end): (ApiResource, &str)| {
        let ApiResource { api_version, kind, .. } = resource;
        let name = format!("{name}-{end}");
        // The status of a RayService does not name them.
        let target = RayTarget { api_version, kind, name, uid: String::new() };
        UnwatchedObject { target, is_made: false }
    };
    kinds.filter(move |_| is_incremental).map(object)
}
