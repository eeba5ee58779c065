//! AppWrappers of the official controller that ours takes over as they are.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{profile::settings, world::WrapperWorld};
use crate::{
    OperatorOutcome, ray::takeover_tests::stored, replay, tests::cases, verdict::take_recorded,
};

/// Objects by id, and whether each is being deleted.
fn objects(world: &WrapperWorld) -> BTreeMap<String, bool> {
    let is_deleted = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    world.objects.iter().map(|(id, object)| (id.clone(), is_deleted(object))).collect()
}

/// What is made or deleted by looks at the objects of a step, of which ours knows nothing yet.
fn harms(
    case: &Value,
    recorded: &BTreeMap<String, Value>,
    nodes: &BTreeMap<String, Value>,
) -> Vec<String> {
    let profile = case["profile"].as_str().unwrap_or_default();
    let mut world = WrapperWorld::new(settings(profile), 0);
    world.node_labels.clone_from(nodes);
    for (version, (id, object)) in recorded.iter().enumerate() {
        world.objects.insert(id.clone(), stored(object, "2026-01-01T00:00:00Z", version));
    }
    let before = objects(&world);
    for _ in 0..3 {
        world.look();
    }
    let after = objects(&world);
    let changed = before.iter().filter(|(id, deleted)| after.get(*id) != Some(*deleted));
    let made = after.keys().filter(|id| !before.contains_key(*id));
    changed
        .map(|(id, _)| format!("deletes {id}"))
        .chain(made.map(|id| format!("makes {id}")))
        .collect()
}

#[test]
fn app_wrappers_are_taken_over_as_they_are() {
    let (mut wrong, mut n_steps) = (Vec::new(), 0);
    for case in cases("appwrapper", "appwrapper") {
        if replay(&case).outcome != OperatorOutcome::Alike {
            continue;
        }
        let (mut recorded, mut nodes) = (BTreeMap::new(), BTreeMap::new());
        for step in case["steps"].as_array().into_iter().flatten() {
            for operation in step["do"].as_array().into_iter().flatten() {
                match operation["op"].as_str().unwrap_or_default() {
                    "labelNode" => {
                        let node = operation["node"].as_str().unwrap_or("node-1").to_owned();
                        let health = &operation["labels"]["autopilot.ibm.com/gpuhealth"];
                        nodes.insert(node, health.clone());
                    }
                    "unlabelNodes" => nodes.clear(),
                    _ => {}
                }
            }
            take_recorded(&mut recorded, step);
            // The official controller notices a failure up to a minute later, and acts then.
            if recorded.values().any(|it| it["kind"] == "Pod" && it["status"]["phase"] == "Failed")
            {
                continue;
            }
            let what = step["step"].as_str().unwrap_or_default();
            let found = harms(&case, &recorded, &nodes);
            wrong.extend(found.iter().map(|harm| format!("{} ({what}): {harm}", case["name"])));
            n_steps += 1;
        }
    }
    assert!(n_steps >= 100, "{n_steps} steps");
    assert!(wrong.is_empty(), "{} harms: {}", wrong.len(), wrong.join("\n"));
}
