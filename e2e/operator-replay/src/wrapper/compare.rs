//! A case against the operator, step by step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    profile::settings,
    world::{WrapperWorld, id},
};
use crate::{
    normal::normal,
    operations::{self, selected},
    pod_status,
    value_difference::compare,
    verdict::{CaseVerdict, Moment, NOT_THERE, take_recorded},
};

/// Replays a case. When a pod starts was not recorded, so several delays are tried.
pub(crate) fn verdict(case: &Value) -> CaseVerdict {
    let mut best: Option<CaseVerdict> = None;
    for delay in [-1, 0, 1, 3] {
        let found = replay(case, delay);
        if found.differences.is_empty() && found.wanted.is_empty() {
            return found;
        }
        if best.as_ref().is_none_or(|best| found.badness() < best.badness()) {
            best = Some(found);
        }
    }
    best.unwrap_or_default()
}

fn replay(case: &Value, delay: i64) -> CaseVerdict {
    let profile = case["profile"].as_str().unwrap_or_default();
    let mut replay = WrapperReplay {
        world: WrapperWorld::new(settings(profile), delay),
        expected: BTreeMap::new(),
        varies: case["varies"].as_array().into_iter().flatten().cloned().collect(),
        their_events: BTreeSet::new(),
        our_events: BTreeSet::new(),
        absent: Vec::new(),
    };
    let mut verdict = CaseVerdict::default();
    let steps = case["steps"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, step) in steps.iter().enumerate() {
        let what = format!("step {index} ({})", step["step"].as_str().unwrap_or_default());
        let before = replay.expected.clone();
        let mut found = replay.step(index, step);
        if index + 1 == steps.len() {
            found.extend(replay.compare_events());
        }
        let found = found.into_iter().map(|text| format!("{what}: {text}")).collect();
        let moment = Moment { step, before: &before, after: &replay.expected };
        if !verdict.take(&moment, found) {
            break;
        }
    }
    verdict.n_exempt = if replay.varying_events() { replay.their_events.len() } else { 0 };
    verdict
}

struct WrapperReplay {
    world: WrapperWorld,
    /// Objects as recorded.
    expected: BTreeMap<String, Value>,
    varies: Vec<Value>,
    their_events: BTreeSet<(String, String)>,
    our_events: BTreeSet<(String, String)>,
    /// Objects that operations of the step were about, and that are not there.
    absent: Vec<String>,
}

impl WrapperReplay {
    fn step(&mut self, index: usize, step: &Value) -> Vec<String> {
        self.world.begin();
        for operation in operations::carried_out(step) {
            self.operation(operation, &step["put"]);
        }
        self.world.settle();
        take_recorded(&mut self.expected, step);
        let varies = |path: &str| {
            self.varies.iter().any(|it| it.as_str().is_some_and(|it| it.starts_with(path)))
        };
        let mut found = std::mem::take(&mut self.absent);
        let varied = (0..=index).any(|at| varies(&format!("{at}.put.AppWrapper")));
        if !varied && !varies(&format!("{index}.gone")) {
            found.extend(self.compare_objects());
        }
        self.collect_events(step);
        found
    }

    fn operation(&mut self, operation: &Value, put: &Value) {
        let target = operations::target(&self.world.objects, operation);
        match operation["op"].as_str().unwrap_or_default() {
            "create" => self.create(&operation["object"], put),
            "patch" | "jsonPatch" => {
                let mut fits = true;
                self.change(&target, |it| fits = operations::patch(it, operation));
                self.absent.extend((!fits).then(|| format!("part of {target} {NOT_THERE}")));
            }
            "delete" => {
                if operation["propagation"] == "Orphan" {
                    operations::orphan(&mut self.world.objects, &target);
                }
                self.world.delete(&target, false);
                self.touched(&target);
            }
            "deletePod" => {
                for pod in selected(&self.world.objects, operation) {
                    self.world.delete(&pod, false);
                }
            }
            "podStatus" => {
                let now = self.world.now();
                pod_status::set_selected(&mut self.world.objects, operation, now);
            }
            // The names in it are random: the spec is the recorded one.
            "workersToDelete" => self.change(&target, |object| {
                if let Some(recorded) = put.get(&target) {
                    object["spec"] = recorded["spec"].clone();
                }
            }),
            "labelNode" => self.world.label_node(operation),
            "unlabelNodes" => self.world.unlabel_nodes(operation),
            "wait" => {
                for _ in 0..operation["seconds"].as_u64().unwrap_or_default() {
                    self.world.second();
                }
            }
            "waitFor" => self.wait_for(operation, &target),
            "dashboard" => {
                for (name, value) in operation["set"].as_object().into_iter().flatten() {
                    self.world.head[name.as_str()] = value.clone();
                }
            }
            _ => {}
        }
    }

    fn create(&mut self, object: &Value, put: &Value) {
        let mut object = object.clone();
        let recorded = &put[id(&object)];
        if object["kind"] != "AppWrapper" && recorded.is_object() {
            object = recorded.clone();
            object["status"] = Value::Null;
        }
        let _ = self.world.create(object);
    }

    fn change(&mut self, target: &str, change: impl FnOnce(&mut Value)) {
        match self.world.objects.get_mut(target) {
            Some(object) => change(object),
            None => self.absent.push(format!("{target} {NOT_THERE}")),
        }
        self.touched(target);
    }

    fn touched(&mut self, target: &str) {
        if target.starts_with("AppWrapper/") {
            self.world.trigger();
        }
    }

    fn wait_for(&mut self, operation: &Value, target: &str) {
        for _ in 0..operation["timeout"].as_u64().unwrap_or(60) {
            if operations::holds(self.world.objects.get(target), operation) {
                return;
            }
            self.world.second();
        }
    }

    /// The AppWrapper and the objects that it made. Pods of other controllers are theirs.
    fn compare_objects(&self) -> Vec<String> {
        let ours = reduced(self.world.objects.values());
        let theirs = reduced(self.expected.values());
        let mut found = Vec::new();
        let ids: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for id in ids {
            match (ours.get(id), theirs.get(id)) {
                (None, _) => found.push(format!("{id} is missing")),
                (_, None) => found.push(format!("{id} is not recorded")),
                (Some(ours), Some(theirs)) => compare(id, ours, theirs, &mut found),
            }
        }
        found
    }

    /// An event may be recorded in the step after the one that it belongs to, so events are compared at the end.
    fn collect_events(&mut self, step: &Value) {
        for event in step["events"].as_array().into_iter().flatten() {
            if event["about"].as_str().is_some_and(|about| about.starts_with("AppWrapper/")) {
                let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
                self.their_events.insert((text("reason"), text("message")));
            }
        }
        self.our_events.extend(self.world.events.iter().cloned());
    }

    /// Whether the two recordings have other events.
    fn varying_events(&self) -> bool {
        self.varies.iter().any(|it| it.as_str().is_some_and(|it| it.ends_with(".events")))
    }

    fn compare_events(&self) -> Option<String> {
        let (theirs, ours) = (&self.their_events, &self.our_events);
        (!self.varying_events() && ours != theirs)
            .then(|| format!("events\n  theirs {theirs:?}\n  ours   {ours:?}"))
    }
}

fn reduced<'a>(objects: impl Iterator<Item = &'a Value>) -> BTreeMap<String, Value> {
    let is_compared = |object: &&Value| {
        let is_wrapper = object["kind"] == "AppWrapper";
        let owners = object["metadata"]["ownerReferences"].as_array();
        let owner = owners.and_then(|owners| owners.first());
        let is_made = owner.is_some_and(|owner| owner["kind"] == "AppWrapper");
        // A Namespace is not in a namespace, and so was not recorded.
        (is_wrapper || is_made || owner.is_none())
            && object["kind"] != "ResourceQuota"
            && object["kind"] != "Namespace"
    };
    objects.filter(is_compared).map(|object| (id(object), reduce(object))).collect()
}

fn reduce(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "AppWrapper" {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|name, _| {
                ["name", "labels", "annotations", "finalizers"].contains(&name.as_str())
            });
        }
        without_times(&mut object["status"]);
        if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
            conditions.sort_by_key(|condition| condition["type"].to_string());
        }
        without_empty(&mut object["spec"]);
        if object["spec"]["suspend"].is_null() {
            object["spec"]["suspend"] = json!(false);
        }
        return object;
    }
    object["status"] = Value::Null;
    // The operator of Ray writes it again, with its finalizer and with empty parts.
    if object["kind"] == "RayJob" {
        without_empty(&mut object["spec"]);
        object["metadata"]["finalizers"] = Value::Null;
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("nodeName");
        // What the API server fills in for these kinds alone.
        for name in [
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
            "strategy",
            "podManagementPolicy",
            "updateStrategy",
            "persistentVolumeClaimRetentionPolicy",
            "clusterIP",
        ] {
            spec.remove(name);
        }
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(port) = port.as_object_mut() {
                port.remove("targetPort");
            }
        }
    }
    normal(&object)
}

fn without_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(without_empty);
            map.retain(|_, value| *value != json!({}) && *value != json!([]));
        }
        Value::Array(items) => items.iter_mut().for_each(without_empty),
        _ => {}
    }
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("lastTransitionTime");
            map.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}
