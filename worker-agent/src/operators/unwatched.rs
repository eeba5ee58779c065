//! Objects that a pass reads before its decision, since no watch shows them.

use std::sync::Arc;

use appwrapper::{component_name, names::RESOURCES_DEPLOYED};
use ray::{PassInputs, settings::OperatorSettings, step::ObjectTarget};
use serde_json::Value;

/// An object that a pass reads before its decision.
pub(super) struct UnwatchedObject {
    pub(super) target: ObjectTarget,
    /// Whether the status of the operated object says that it was made.
    pub(super) is_made: bool,
}

/// Those of an operated object: components of an AppWrapper are of any kind, and what a RayCluster, a RayJob or a RayService looks up by
/// name may be an object of the user or, as the routes of a RayService, one without a label.
pub(super) fn unwatched_objects(
    parent: &Value,
    children: &[Arc<Value>],
    inputs: &PassInputs,
    settings: &OperatorSettings,
) -> Vec<UnwatchedObject> {
    let mut objects = components(parent);
    let children: Vec<&Value> = children.iter().map(|child| &**child).collect();
    let named = match parent["kind"].as_str() {
        Some("RayCluster") => ray::cluster::named_objects(parent, inputs, settings),
        Some("RayService") => ray::service::named_objects(parent, settings),
        Some("RayJob") => ray::job::named_objects(parent, &children),
        _ => Vec::new(),
    };
    let is_known = |target: &ObjectTarget| {
        let mut children = children.iter();
        children.any(|it| it["kind"] == target.kind && it["metadata"]["name"] == target.name)
    };
    let unknown = named.into_iter().filter(|target| !is_known(target));
    objects.extend(unknown.map(|target| UnwatchedObject { target, is_made: false }));
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
        let target = ObjectTarget { name, ..ObjectTarget::of(template) };
        let is_made = is_deployed(&parent["status"]["componentStatus"][index]);
        UnwatchedObject { target, is_made }
    };
    // One without a name is not there; its create is refused, and the refusal fails the AppWrapper.
    components.enumerate().map(object).filter(|it| !it.target.name.is_empty()).collect()
}

fn is_deployed(component: &Value) -> bool {
    let mut conditions = component["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == RESOURCES_DEPLOYED && it["status"] == "True")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn unwatched(children: &[&str]) -> Vec<String> {
        let template = json!({"spec": {"containers": [{"name": "head", "image": "ray"}]}});
        let cluster = json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
            "spec": {"enableInTreeAutoscaling": true, "headGroupSpec": {"template": template}},
        });
        let child = |kind: &&str| Arc::new(json!({"kind": kind, "metadata": {"name": "c"}}));
        let children: Vec<_> = children.iter().map(child).collect();
        let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [0; 32] };
        let found = unwatched_objects(&cluster, &children, &inputs, &OperatorSettings::default());
        found.into_iter().map(|it| it.target.kind).collect()
    }

    #[test]
    fn a_component_without_a_name_is_not_read() {
        let component = |metadata: Value| json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}});
        let names = [json!({}), json!({"name": "p"}), json!({"generateName": "g-"})];
        let wrapper = json!({
            "kind": "AppWrapper", "metadata": {"name": "w", "uid": "0123456789"},
            "spec": {"components": names.map(component)},
        });
        let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [0; 32] };
        let found = unwatched_objects(&wrapper, &[], &inputs, &OperatorSettings::default());
        let found: Vec<String> = found.into_iter().map(|it| it.target.name).collect();
        assert_eq!(found, ["p", "g-012345672"]);
    }

    /// Its end reads its clusters only, and must not wait for the group of the routes.
    #[test]
    fn a_ray_service_that_is_deleted_reads_no_route() {
        let mut service = json!({
            "kind": "RayService", "metadata": {"name": "s"},
            "spec": {"upgradeStrategy": {"type": "NewClusterWithIncrementalUpgrade"}},
        });
        let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [0; 32] };
        let settings = OperatorSettings::default();
        let read = |service: &Value| -> Vec<String> {
            let found = unwatched_objects(service, &[], &inputs, &settings);
            found.into_iter().map(|it| it.target.name).collect()
        };
        assert!(read(&service).contains(&"s-httproute".to_owned()));
        service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(read(&service), Vec::<String>::new());
    }

    #[test]
    fn what_a_watch_has_shown_is_not_read() {
        assert_eq!(unwatched(&[]), ["ServiceAccount", "Role", "RoleBinding"]);
        assert_eq!(unwatched(&["Role", "RoleBinding"]), ["ServiceAccount"]);
        assert_eq!(unwatched(&["ServiceAccount", "Role", "RoleBinding"]), Vec::<String>::new());
    }
}
