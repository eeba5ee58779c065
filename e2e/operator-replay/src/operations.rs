//! The operations of a recording: which there are, and those that mean the same in every family of cases.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Operations and their fields, as the format of the recordings names them.
const OPERATIONS: &[(&str, &[&str])] = &[
    ("create", &["object"]),
    ("patch", &["target", "patch", "sub"]),
    ("jsonPatch", &["target", "patch", "sub"]),
    ("delete", &["target", "propagation"]),
    ("deletePod", &["select", "index"]),
    ("podStatus", &["select", "index", "all", "status"]),
    ("workersToDelete", &["target", "group", "index", "extra", "replicas"]),
    ("dashboard", &["set"]),
    ("wait", &["seconds"]),
    ("waitFor", &["target", "field", "value", "timeout"]),
    ("labelNode", &["node", "ofPod", "labels"]),
    ("unlabelNodes", &["node", "ofPod", "labels"]),
];

/// What can be set of the played head.
const DASHBOARD: &[&str] = &["up", "job", "jobs", "raw", "submit", "apps", "proxyHealthy"];

/// What can be set of the applications of the played head.
const APPLICATIONS: &[&str] = &["status", "message", "per", "hidden", "putCode", "putBody"];

/// Values of fields that have a fixed set of them.
const PROPAGATIONS: [&str; 3] = ["Background", "Foreground", "Orphan"];
const KINDS: [&str; 6] =
    ["AppWrapper", "RayCluster", "RayCronJob", "RayJob", "RayService", "Webhook"];
const VERBS: [&str; 2] = ["create", "update"];

/// What a case has that no replay knows.
pub(crate) fn unknown(case: &Value) -> Option<String> {
    let text = |name: &str| case[name].as_str().unwrap_or_default();
    if !KINDS.contains(&text("kind")) {
        return Some(format!("the replay does not know the kind {:?}", text("kind")));
    }
    if text("kind") == "Webhook" && !VERBS.contains(&text("verb")) {
        return Some(format!("the replay does not know the verb {:?}", text("verb")));
    }
    let steps = case["steps"].as_array().into_iter().flatten().enumerate();
    steps.into_iter().find_map(|(index, step)| {
        let mut operations = step["do"].as_array().into_iter().flatten();
        let what = operations.find_map(unknown_part)?;
        let name = step["step"].as_str().unwrap_or_default();
        Some(format!("step {index} ({name}): the replay does not know {what}"))
    })
}

/// What an operation has that no replay knows.
fn unknown_part(operation: &Value) -> Option<String> {
    let name = operation["op"].as_str().unwrap_or_default();
    let Some((_, fields)) = OPERATIONS.iter().find(|(known, _)| *known == name) else {
        return Some(format!("the operation {name:?}"));
    };
    let other = |value: &Value, known: &[&str]| {
        let mut keys = value.as_object().into_iter().flatten().map(|(key, _)| key);
        keys.find(|key| *key != "op" && !known.contains(&key.as_str())).cloned()
    };
    let set = &operation["set"];
    let propagation = operation["propagation"].as_str();
    None.or_else(|| other(operation, fields).map(|key| format!("the field {key} of {name}")))
        .or_else(|| other(set, DASHBOARD).map(|key| format!("the setting {key} of a dashboard")))
        .or_else(|| other(&set["apps"], APPLICATIONS).map(|key| format!("the setting apps.{key}")))
        .or_else(|| {
            let other = propagation.filter(|it| !PROPAGATIONS.contains(it))?;
            Some(format!("the propagation {other:?}"))
        })
}

/// The target of an operation. `RayCluster/?` is the oldest one.
pub(crate) fn target(objects: &BTreeMap<String, Value>, operation: &Value) -> String {
    let target = operation["target"].as_str().unwrap_or_default();
    let Some(kind) = target.strip_suffix('?') else { return target.to_owned() };
    let of_kind = objects.iter().filter(|(id, _)| id.starts_with(kind));
    of_kind.min_by_key(|(_, object)| version(object)).map(|(id, _)| id.clone()).unwrap_or_default()
}

/// The number of a create, by which objects are in the order of their appearance.
pub(crate) fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    version.parse().unwrap_or_default()
}

/// The live pods that an operation selects.
pub(crate) fn selected(objects: &BTreeMap<String, Value>, operation: &Value) -> Vec<String> {
    let is_wanted = |pod: &Value| {
        let mut wanted = operation["select"].as_object().into_iter().flatten();
        let labels = &pod["metadata"]["labels"];
        wanted.all(|(key, value)| labels[key] == *value)
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let pods = objects.iter().filter(|(id, pod)| id.starts_with("Pod/") && is_wanted(pod));
    let mut pods: Vec<(u64, &String)> = pods.map(|(id, pod)| (version(pod), id)).collect();
    pods.sort();
    let pods = pods.into_iter().map(|(_, id)| id.clone());
    if operation["all"] == true {
        return pods.collect();
    }
    let index = operation["index"].as_u64().unwrap_or_default();
    pods.skip(usize::try_from(index).unwrap_or_default()).take(1).collect()
}

/// Takes an owner away from its objects, as the garbage collector does after a deletion with the propagation Orphan.
pub(crate) fn orphan(objects: &mut BTreeMap<String, Value>, owner: &str) {
    let uid = json!(format!("<uid of {owner}>"));
    for object in objects.values_mut() {
        let Some(metadata) = object["metadata"].as_object_mut() else { continue };
        let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else {
            continue;
        };
        owners.retain(|it| it["uid"] != uid);
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
}

/// Applies a merge patch or a JSON patch, with the namespace in place of `$NS`. A JSON patch that does not fit changes nothing: returns
/// whether it fits. Of a merge patch with `sub` the API server ignores all but the status.
pub(crate) fn patch(object: &mut Value, operation: &Value) -> bool {
    let text = operation["patch"].to_string().replace("$NS", "<ns>");
    if operation["op"] == "jsonPatch" {
        let patch = serde_json::from_str::<json_patch::Patch>(&text);
        return patch.is_ok_and(|patch| json_patch::patch(object, &patch).is_ok());
    }
    let patch: Value = serde_json::from_str(&text).unwrap_or_default();
    let is_of_status = operation["sub"] == "/status";
    let patch = if is_of_status { json!({"status": patch["status"]}) } else { patch };
    json_patch::merge(object, &patch);
    true
}

/// Whether an object is as the recording waited for.
pub(crate) fn holds(object: Option<&Value>, operation: &Value) -> bool {
    let field = operation["field"].as_str().unwrap_or_default().replace('.', "/");
    let value = object.and_then(|object| object.pointer(&format!("/{field}")));
    value == Some(&operation["value"])
}

/// The object of an update: what is stored, with the spec of the change, and with its labels and annotations merged in.
pub(crate) fn updated(old: &Value, change: &Value) -> Value {
    let mut new = old.clone();
    for part in ["labels", "annotations"] {
        let added = &change["metadata"][part];
        if !added.is_null() {
            json_patch::merge(&mut new["metadata"][part], added);
        }
    }
    new["spec"] = change["spec"].clone();
    new
}

/// The operations of a step, without those that the API server refused and that changed nothing.
pub(crate) fn carried_out(step: &Value) -> impl Iterator<Item = &Value> {
    let operations = step["do"].as_array().into_iter().flatten().enumerate();
    operations
        .filter(|(index, _)| step["answers"][*index].is_null())
        .map(|(_, operation)| operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OperatorOutcome, replay};

    fn case(kind: &str, operations: &Value) -> Value {
        let profile = if kind == "AppWrapper" { "appwrapper" } else { "default" };
        let steps = json!([{"step": "s", "do": operations, "put": {}}]);
        json!({"name": "x", "kind": kind, "profile": profile, "steps": steps})
    }

    fn found(case: &Value) -> String {
        format!("{:?}", replay(case).outcome)
    }

    #[test]
    fn every_operation_of_the_format_is_known_to_every_family() {
        let operations = json!([
            {"op": "dashboard", "set": {"job": null, "apps": {"status": "RUNNING"}}},
            {"op": "deletePod", "select": {"a": "b"}, "index": 1},
            {"op": "podStatus", "select": {"a": "b"}, "all": true, "status": {"ready": false}},
            {"op": "wait", "seconds": 1},
            {"op": "waitFor", "target": "Pod/p", "field": "status.phase", "value": "x", "timeout": 1},
            {"op": "labelNode", "ofPod": "p", "labels": {"a": "b"}},
            {"op": "unlabelNodes", "labels": ["a"]},
            {"op": "delete", "target": "Pod/p", "propagation": "Orphan"},
        ]);
        for kind in KINDS.iter().filter(|kind| **kind != "Webhook") {
            assert_eq!(replay(&case(kind, &operations)).outcome, OperatorOutcome::Alike, "{kind}");
        }
    }

    #[test]
    fn an_operation_on_what_is_not_there_fails_its_case() {
        for kind in ["AppWrapper", "RayJob", "RayService"] {
            let operation = json!({
                "op": "workersToDelete", "target": "RayCluster/c", "group": "g", "index": [0],
            });
            let found = found(&case(kind, &json!([operation])));
            assert!(found.contains("RayCluster/c is not there to be changed"), "{kind} {found}");
        }
    }

    #[test]
    fn what_is_unknown_fails_its_own_case_with_its_name() {
        for kind in KINDS.iter().filter(|kind| **kind != "Webhook") {
            let of = |operation: Value| found(&case(kind, &json!([operation])));
            let unheard = of(json!({"op": "unheard-of"}));
            assert!(unheard.contains("step 0 (s): the replay does not know the operation"));
            assert!(unheard.contains("unheard-of"), "{unheard}");
            assert!(of(json!({"op": "wait", "hours": 1})).contains("the field hours of wait"));
            let set = json!({"op": "dashboard", "set": {"colour": "red"}});
            assert!(of(set).contains("the setting colour of a dashboard"));
            let delete = json!({"op": "delete", "target": "Pod/p", "propagation": "Sideways"});
            assert!(of(delete).contains("the propagation"));
        }
        let other = case("Thing", &json!([]));
        assert!(found(&other).contains("does not know the kind"));
        let verb = json!({"name": "x", "kind": "Webhook", "of": "RayJob", "verb": "connect"});
        assert!(found(&verb).contains("does not know the verb"));
    }

    #[test]
    fn a_case_that_cannot_be_replayed_says_why() {
        let mut case = case("RayJob", &json!([]));
        case["profile"] = json!("unheard-of");
        assert!(found(&case).contains("unknown profile unheard-of"), "{}", found(&case));
    }

    #[test]
    fn pods_are_selected_in_the_order_of_their_appearance() {
        let pod =
            |version: &str| json!({"metadata": {"labels": {"a": "b"}, "resourceVersion": version}});
        let pods = [("Pod/a", pod("10")), ("Pod/b", pod("9")), ("Pod/c", json!({}))];
        let objects = pods.into_iter().map(|(id, pod)| (id.to_owned(), pod)).collect();
        let of = |operation: Value| selected(&objects, &operation);
        assert_eq!(of(json!({"select": {"a": "b"}})), ["Pod/b"]);
        assert_eq!(of(json!({"select": {"a": "b"}, "index": 1})), ["Pod/a"]);
        assert_eq!(of(json!({"select": {"a": "b"}, "all": true})), ["Pod/b", "Pod/a"]);
    }

    #[test]
    fn orphans_have_no_owner() {
        let owned = json!({"metadata": {"ownerReferences": [{"uid": "<uid of RayCluster/c>"}]}});
        let mut objects = BTreeMap::from([("Pod/p".to_owned(), owned)]);
        orphan(&mut objects, "RayCluster/c");
        assert_eq!(objects["Pod/p"], json!({"metadata": {}}));
    }
}
