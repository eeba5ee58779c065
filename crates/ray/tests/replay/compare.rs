//! A case against the operator, step by step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    cases::settings,
    normal::normal,
    world::{TOKEN, World, id, set_ready, terminate},
};

/// Replays a case and returns what differs.
pub(crate) fn differences(case: &Value) -> Vec<String> {
    let mut replay = Replay {
        world: World::new(settings(case["profile"].as_str().unwrap_or_default())),
        expected: BTreeMap::new(),
        names: BTreeMap::new(),
        known: BTreeSet::new(),
        varies: case["varies"].as_array().into_iter().flatten().cloned().collect(),
    };
    let mut found = Vec::new();
    for (index, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        let what = format!("step {index} ({})", step["step"].as_str().unwrap_or_default());
        if step["unsettled"] == true {
            found.push(format!("{what}: the official operator does not come to rest"));
        }
        found.extend(replay.step(index, step).into_iter().map(|text| format!("{what}: {text}")));
        if !found.is_empty() {
            break;
        }
    }
    found
}

struct Replay {
    world: World,
    /// Objects as recorded.
    expected: BTreeMap<String, Value>,
    /// Random parts of our names, and the recorded ones.
    names: BTreeMap<String, String>,
    /// Ids of expected objects of earlier steps.
    known: BTreeSet<String>,
    varies: Vec<Value>,
}

impl Replay {
    fn step(&mut self, index: usize, step: &Value) -> Vec<String> {
        let answers = step["answers"].as_array().cloned().unwrap_or_default();
        self.world.begin();
        let mut watched = false;
        for (at, operation) in step["do"].as_array().into_iter().flatten().enumerate() {
            if answers.get(at).is_some_and(|answer| !answer.is_null()) {
                continue;
            }
            let target = operation["target"].as_str().unwrap_or_default();
            watched |= !target.starts_with("Ingress/");
            self.operation(operation, &step["put"]);
        }
        self.take_specs(&step["put"]);
        let settled = !watched || self.world.settle();
        for (id, object) in step["put"].as_object().into_iter().flatten() {
            self.expected.insert(id.clone(), object.clone());
        }
        for id in step["gone"].as_array().into_iter().flatten() {
            self.expected.remove(id.as_str().unwrap_or_default());
        }
        let mut found = Vec::new();
        if !settled {
            found.push("does not come to rest".to_owned());
        }
        self.rename();
        found.extend(self.compare_objects());
        found.extend(self.compare_passed(&step["passed"]));
        if !self.varies.iter().any(|path| *path == format!("{index}.events")) {
            found.extend(self.compare_events(step));
        }
        self.known = self.expected.keys().cloned().collect();
        found
    }

    fn operation(&mut self, operation: &Value, put: &Value) {
        let target = operation["target"].as_str().unwrap_or_default().to_owned();
        match operation["op"].as_str().unwrap_or_default() {
            "create" => {
                let mut object = operation["object"].clone();
                let recorded = &put[id(&object)];
                if object["kind"] != "RayCluster" && recorded.is_object() {
                    object = recorded.clone();
                }
                let _ = self.world.create(object);
            }
            "patch" => {
                let patch = text_replaced(&operation["patch"], "$NS", "<ns>");
                self.change(&target, |object| json_patch::merge(object, &patch));
            }
            "jsonPatch" => {
                let patch: json_patch::Patch =
                    serde_json::from_value(operation["patch"].clone()).expect("a patch");
                self.change(&target, |object| {
                    json_patch::patch(object, &patch).expect("the patch applies");
                });
            }
            "delete" => self.delete(&target),
            "deletePod" => {
                for pod in self.selected(operation) {
                    self.world.delete(&pod);
                }
            }
            "podStatus" => self.pod_status(operation),
            "workersToDelete" => self.workers_to_delete(operation, &target),
            "wait" | "waitFor" => {}
            other => unreachable!("unknown operation {other}"),
        }
    }

    fn delete(&mut self, target: &str) {
        if target.starts_with("RayCluster/")
            && let Some(object) = self.world.objects.get_mut(target)
        {
            // The environment removes it when no finalizer is left.
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            return;
        }
        self.world.delete(target);
    }

    fn change(&mut self, target: &str, change: impl FnOnce(&mut Value)) {
        let object = self.world.objects.get_mut(target).expect("the target");
        let spec = object["spec"].clone();
        change(object);
        if object["spec"] != spec {
            let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
            object["metadata"]["generation"] = json!(generation + 1);
        }
    }

    /// The stored spec has the defaults of the CRD, which this replay does not fill in itself.
    fn take_specs(&mut self, put: &Value) {
        for (id, recorded) in put.as_object().into_iter().flatten() {
            if !id.starts_with("RayCluster/") {
                continue;
            }
            let mut text = recorded["spec"].to_string();
            for (ours, theirs) in &self.names {
                text = text.replace(theirs.as_str(), ours);
            }
            if let Some(object) = self.world.objects.get_mut(id) {
                object["spec"] = serde_json::from_str(&text).expect("a spec");
            }
        }
    }

    fn selected(&self, operation: &Value) -> Vec<String> {
        let mut pods: Vec<(u64, &String)> = self
            .world
            .objects
            .iter()
            .filter(|(id, _)| id.starts_with("Pod/"))
            .filter(|(_, pod)| pod["metadata"]["deletionTimestamp"].is_null())
            .filter(|(_, pod)| {
                let wanted = operation["select"].as_object().into_iter().flatten();
                wanted.into_iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value)
            })
            .map(|(id, pod)| {
                let version = pod["metadata"]["resourceVersion"].as_str().unwrap_or_default();
                (version.parse().unwrap_or_default(), id)
            })
            .collect();
        pods.sort();
        let pods = pods.into_iter().map(|(_, id)| id.clone());
        if operation["all"] == true {
            return pods.collect();
        }
        let index = operation["index"].as_u64().unwrap_or_default();
        pods.skip(usize::try_from(index).unwrap_or_default()).take(1).collect()
    }

    fn pod_status(&mut self, operation: &Value) {
        for id in self.selected(operation) {
            let pod = self.world.objects.get_mut(&id).expect("a pod");
            for (name, value) in operation["status"].as_object().into_iter().flatten() {
                match name.as_str() {
                    "ready" => {
                        set_ready(pod, value == true, None);
                        if value == false {
                            let conditions = pod["status"]["conditions"].as_array_mut();
                            for condition in conditions.into_iter().flatten() {
                                condition["message"] = json!("containers with unready status");
                            }
                        }
                    }
                    "terminate" => {
                        let reason = value["reason"].as_str().unwrap_or("Error");
                        let code = value["exitCode"].as_i64().unwrap_or_default();
                        terminate(pod, value["container"].as_str(), code, reason);
                    }
                    _ => pod["status"][name] = value.clone(),
                }
            }
        }
    }

    fn workers_to_delete(&mut self, operation: &Value, target: &str) {
        let mut names = Vec::new();
        for index in operation["index"].as_array().into_iter().flatten() {
            let select = json!({"ray.io/group": operation["group"]});
            let ids = self.selected(&json!({"select": select, "index": index}));
            names.extend(ids.iter().map(|id| json!(id.trim_start_matches("Pod/"))));
        }
        names.extend(operation["extra"].as_array().into_iter().flatten().cloned());
        let replicas = operation["replicas"].clone();
        self.change(target, |object| {
            let group = &mut object["spec"]["workerGroupSpecs"][0];
            group["scaleStrategy"] = json!({"workersToDelete": names});
            if !replicas.is_null() {
                group["replicas"] = replicas;
            }
        });
    }

    /// Pairs our objects with recorded ones: those that were there before, and the new ones.
    fn rename(&mut self) {
        let mut theirs: Vec<(String, &String)> = self
            .expected
            .iter()
            .filter(|(id, _)| id.contains("<r"))
            .map(|(id, object)| (key(id, object, self.known.contains(id)), id))
            .collect();
        theirs.sort();
        let known = |id: &String| self.names.iter().any(|(token, _)| id.contains(token.as_str()));
        let mut ours: Vec<(String, &String)> = self
            .world
            .objects
            .iter()
            .filter(|(id, _)| id.contains(TOKEN))
            .map(|(id, object)| (key(id, object, known(id)), id))
            .collect();
        ours.sort();
        let mut names = self.names.clone();
        for ((our_key, our_id), (their_key, their_id)) in ours.iter().zip(&theirs) {
            if our_key == their_key {
                names.insert(random_part(our_id, TOKEN), random_part(their_id, "<r"));
                let replica = |object: &Value| {
                    let name = &object["metadata"]["labels"]["ray.io/worker-group-replica-name"];
                    name.as_str().map(str::to_owned)
                };
                let our_replica = replica(&self.world.objects[*our_id]);
                let their_replica = replica(&self.expected[*their_id]);
                if let (Some(ours), Some(theirs)) = (our_replica, their_replica) {
                    names.insert(ours, theirs);
                }
            }
        }
        self.names = names;
    }

    fn renamed(&self, object: &Value) -> Value {
        let mut text = object.to_string();
        for (ours, theirs) in &self.names {
            text = text.replace(ours.as_str(), theirs);
        }
        serde_json::from_str(&text).expect("an object")
    }

    fn compare_objects(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut ours: BTreeMap<String, Value> = BTreeMap::new();
        for object in self.world.objects.values() {
            let object = self.renamed(object);
            if object["kind"] != "ResourceQuota" {
                ours.insert(id(&object), normal(&object));
            }
        }
        for (id, theirs) in &self.expected {
            match ours.remove(id) {
                None => found.push(format!("{id} is missing")),
                Some(object) => compare(id, &object, &normal(theirs), &mut found),
            }
        }
        found.extend(ours.keys().map(|id| format!("{id} is not recorded")));
        found
    }

    /// Of the objects that came and went, Jobs are compared: they are the operator's.
    fn compare_passed(&self, passed: &Value) -> Vec<String> {
        let mut found = Vec::new();
        for (id, theirs) in passed.as_object().into_iter().flatten() {
            if !id.starts_with("Job/") {
                continue;
            }
            match self.world.passed.get(id) {
                None => found.push(format!("{id} did not pass")),
                Some(ours) => compare(id, &normal(ours), &normal(theirs), &mut found),
            }
        }
        found
    }

    fn compare_events(&self, step: &Value) -> Vec<String> {
        let recorded = step["events"].as_array().cloned().unwrap_or_default();
        let theirs: BTreeSet<(&str, bool)> = recorded
            .iter()
            .map(|it| (it["reason"].as_str().unwrap_or_default(), it["type"] == "Warning"))
            .collect();
        let ours: BTreeSet<(&str, bool)> =
            self.world.events.iter().map(|event| (event.reason, event.warning)).collect();
        // Deletions of what is gone already depend on the delay of a watch.
        let is_race = |(reason, _): &&(&str, bool)| reason.starts_with("FailedToDelete");
        let missing = theirs.difference(&ours).filter(|event| !is_race(event));
        let mut found: Vec<String> =
            missing.map(|(reason, _)| format!("no event {reason}")).collect();
        let more = ours.difference(&theirs).filter(|(reason, _)| {
            !reason.starts_with("Deleted")
                || theirs.is_empty()
                || !theirs.iter().any(|(other, _)| other.starts_with("FailedToDelete"))
        });
        found.extend(more.map(|(reason, _)| format!("event {reason} is not recorded")));
        for event in self.world.events.iter().filter(|event| event.reason.starts_with("Invalid")) {
            let theirs = recorded.iter().find(|it| it["reason"] == event.reason);
            let theirs = theirs.map(|it| it["message"].as_str().unwrap_or_default());
            if theirs.is_some_and(|theirs| theirs != event.message) {
                found.push(format!(
                    "message\n  theirs {}\n  ours   {}",
                    theirs.unwrap_or_default(),
                    event.message
                ));
            }
        }
        found
    }
}

/// What tells interchangeable objects from others.
fn key(id: &str, object: &Value, known: bool) -> String {
    let labels = &object["metadata"]["labels"];
    let stripped = id.split(['<']).next().unwrap_or_default();
    let stripped = stripped.split(TOKEN).next().unwrap_or_default();
    format!(
        "{stripped} {known} {} {} {}",
        labels["ray.io/group"],
        labels["ray.io/worker-group-replica-index"],
        labels["ray.io/replica-host-index"]
    )
}

/// The random part of a name, which ends it.
fn random_part(id: &str, begin: &str) -> String {
    id.rfind(begin).map(|at| id[at..].to_owned()).unwrap_or_default()
}

fn text_replaced(value: &Value, from: &str, to: &str) -> Value {
    serde_json::from_str(&value.to_string().replace(from, to)).expect("a value")
}

/// The places in which two values differ.
pub(crate) fn different(ours: &Value, theirs: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", ours, theirs, &mut found);
    found
}

/// Compares two values and names the first places that differ.
fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let null = Value::Null;
                let pair = (a.get(name).unwrap_or(&null), b.get(name).unwrap_or(&null));
                compare(&format!("{path}.{name}"), pair.0, pair.1, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}\n      theirs {theirs}\n      ours   {ours}")),
    }
}
