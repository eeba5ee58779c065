//! A case against the operator, step by step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    events::{OurEvent, compare_events},
    head::line,
    jobs::is_of_job,
    profile::settings,
    states::{recorded_state, without_early_copies},
    world::{Pace, RayWorld, TOKEN, id},
};
use crate::{
    normal::normal,
    operations::{self, selected},
    pod_status,
    value_difference::compare,
    verdict::{CaseVerdict, Moment, NO_REST, NOT_THERE, take_recorded},
    wanted::HEALTH,
};

/// Kinds that are stored with the defaults of their CRDs.
const PARENTS: [&str; 3] = ["RayCluster/", "RayJob/", "RayService/"];

/// Replays a case.
pub(crate) fn verdict(case: &Value) -> CaseVerdict {
    let pace = match case["kind"].as_str() {
        Some("RayCluster") => Pace::COARSE,
        Some("RayService") => Pace::SERVICE,
        _ => Pace::FINE,
    };
    let mut replay = RayReplay {
        world: RayWorld::at(settings(case["profile"].as_str().unwrap_or_default()), pace),
        attempts: BTreeMap::new(),
        asked: BTreeSet::new(),
        expected: BTreeMap::new(),
        names: BTreeMap::new(),
        known: BTreeSet::new(),
        varies: case["varies"].as_array().into_iter().flatten().cloned().collect(),
        n_exempt: 0,
        absent: Vec::new(),
    };
    let mut verdict = CaseVerdict::default();
    for (index, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        let what = format!("step {index} ({})", step["step"].as_str().unwrap_or_default());
        let before = replay.expected.clone();
        let mut found = replay.step(index, step);
        if step["unsettled"] == true {
            found.insert(0, "the official operator does not come to rest".to_owned());
        }
        let found = found.into_iter().map(|text| format!("{what}: {text}")).collect();
        let moment = Moment { step, before: &before, after: &replay.expected };
        if !verdict.take(&moment, found) {
            break;
        }
    }
    verdict.n_exempt = replay.n_exempt;
    verdict
}

struct RayReplay {
    world: RayWorld,
    /// Objects as recorded.
    expected: BTreeMap<String, Value>,
    /// Random parts of the names of clusters and jobs in Ray, ours and the recorded ones.
    attempts: BTreeMap<String, String>,
    /// Random parts of our names, and the recorded ones.
    names: BTreeMap<String, String>,
    /// Ids of expected objects of earlier steps.
    known: BTreeSet<String>,
    varies: Vec<Value>,
    /// Recorded requests of earlier steps.
    asked: BTreeSet<String>,
    /// Events that were not compared.
    n_exempt: usize,
    /// Objects that operations of the step were about, and that are not there.
    absent: Vec<String>,
}

fn recorded_requests(step: &Value) -> BTreeSet<String> {
    let recorded = step["requests"].as_array().into_iter().flatten();
    let request = |it: &Value| {
        let text = |name: &str| it[name].as_str().unwrap_or_default();
        line(text("method"), text("url"), &it["body"], it["authorization"] == true)
    };
    recorded.map(request).collect()
}

impl RayReplay {
    fn step(&mut self, index: usize, step: &Value) -> Vec<String> {
        self.world.begin();
        let mut watched = false;
        for operation in operations::carried_out(step) {
            let target = operation["target"].as_str().unwrap_or_default();
            watched |= !target.starts_with("Ingress/");
            self.operation(operation, &step["put"]);
            self.take_specs(&step["put"]);
        }
        let settled = !watched || self.world.settle();
        take_recorded(&mut self.expected, step);
        let mut found = std::mem::take(&mut self.absent);
        if !settled {
            found.push(NO_REST.to_owned());
        }
        self.rename();
        self.pair_passed_clusters(step);
        found.extend(self.compare_objects());
        found.retain(|difference| !self.may_vary(index, difference));
        found.extend(self.compare_head(index, step));
        self.note_requests(step);
        found.extend(self.compare_history(step));
        found.extend(self.compare_passed(&step["passed"]));
        if self.varies.iter().any(|path| *path == format!("{index}.events")) {
            self.n_exempt += step["events"].as_array().map_or(0, Vec::len);
        } else {
            found.extend(self.compare_events(step));
        }
        self.known = self.expected.keys().cloned().collect();
        found
    }

    /// Whether the difference came out differently in the two recordings as well, in this step or before.
    fn may_vary(&self, index: usize, difference: &str) -> bool {
        self.varies.iter().filter_map(Value::as_str).any(|path| {
            let (step, path) = path.split_once(".put.").unwrap_or_default();
            step.parse::<usize>().is_ok_and(|step| step <= index) && difference.starts_with(path)
        })
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
                self.world.delete(&target);
            }
            "deletePod" => {
                for pod in selected(&self.world.objects, operation) {
                    self.world.delete(&pod);
                }
            }
            "podStatus" => {
                let now = self.world.now;
                pod_status::set_selected(&mut self.world.objects, operation, now);
            }
            "workersToDelete" => self.workers_to_delete(operation, &target),
            "dashboard" => self.world.head.set(&operation["set"]),
            "wait" => self.world.run_until(operation["seconds"].as_i64().unwrap_or(0), |_| false),
            "waitFor" => self.wait_for(operation, &target),
            // Labels of nodes: the operator of Ray reads none, and no played scheduler does.
            _ => {}
        }
    }

    fn create(&mut self, object: &Value, put: &Value) {
        let mut object = object.clone();
        let recorded = &put[id(&object)];
        if object["kind"] == "RayJob" || object["kind"] == "RayService" {
            // The stored spec has the defaults of the CRD.
            object["spec"] = recorded["spec"].clone();
        } else if object["kind"] != "RayCluster" && recorded.is_object() {
            object = recorded.clone();
        }
        let _ = self.world.create(object);
    }

    fn wait_for(&mut self, operation: &Value, target: &str) {
        let seconds = operation["timeout"].as_i64().unwrap_or(60);
        let holds = |world: &RayWorld| operations::holds(world.objects.get(target), operation);
        self.world.run_until(seconds, holds);
    }

    fn change(&mut self, target: &str, change: impl FnOnce(&mut Value)) {
        let Some(object) = self.world.objects.get_mut(target) else {
            return self.absent.push(format!("{target} {NOT_THERE}"));
        };
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
            let is_made = !recorded["metadata"]["ownerReferences"].is_null();
            if !PARENTS.iter().any(|kind| id.starts_with(kind)) || is_made {
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

    fn workers_to_delete(&mut self, operation: &Value, target: &str) {
        let mut names = Vec::new();
        for index in operation["index"].as_array().into_iter().flatten() {
            let select = json!({"ray.io/group": operation["group"]});
            let operation = json!({"select": select, "index": index});
            let ids = selected(&self.world.objects, &operation);
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

    /// Pairs the names of the clusters of RayJobs and RayServices, and of jobs in Ray, with the recorded ones.
    fn rename_attempts(&mut self) {
        for id in self.world.ids("RayService/") {
            let Some(theirs) = self.expected.get(&id).cloned() else { continue };
            let ours = self.world.objects[&id].clone();
            for part in ["activeServiceStatus", "pendingServiceStatus"] {
                let name =
                    |service: &Value| attempt(service, &service["status"][part]["rayClusterName"]);
                self.pair_attempt(name(&ours), name(&theirs));
            }
            self.pair_clusters(&ours);
        }
        for id in self.world.ids("RayJob/") {
            let Some(theirs) = self.expected.get(&id).cloned() else { continue };
            let ours = self.world.objects[&id].clone();
            for field in ["rayClusterName", "jobId"] {
                let name = |job: &Value| attempt(job, &job["status"][field]);
                self.pair_attempt(name(&ours), name(&theirs));
            }
            // The pod may be gone with its cluster.
            let head = |job: &Value| {
                let name = &job["status"]["rayClusterStatus"]["head"]["podName"];
                name.as_str().unwrap_or_default().to_owned()
            };
            let (ours, theirs) = (head(&ours), head(&theirs));
            let is_gone = !self.world.objects.contains_key(&format!("Pod/{ours}"));
            if is_gone && ours.contains(TOKEN) && theirs.contains("<r") {
                self.names.insert(random_part(&ours, TOKEN), random_part(&theirs, "<r"));
            }
        }
    }

    /// Pairs clusters that the status does not name any more.
    fn pair_clusters(&mut self, service: &Value) {
        let known = |part: &String| {
            self.attempts.iter().any(|(ours, theirs)| ours == part || theirs == part)
        };
        let new = |ids: Vec<&String>| {
            let parts = ids.into_iter().filter_map(|id| id.strip_prefix("RayCluster/"));
            let parts = parts.map(|name| attempt(service, &json!(name)));
            parts.filter(|part| !part.is_empty() && !known(part)).collect::<Vec<_>>()
        };
        let ours = new(self.world.objects.keys().collect());
        let theirs = new(self.expected.keys().collect());
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            self.pair_attempt(ours, theirs);
        }
    }

    /// Pairs clusters that came and went within the step, in the order of their first states.
    fn pair_passed_clusters(&mut self, step: &Value) {
        let lines = step["history"].as_array().into_iter().flatten();
        let is_known = |id: &&str| {
            self.attempts.iter().any(|(ours, theirs)| id.ends_with(ours) || id.ends_with(theirs))
        };
        let new = |ids: &mut dyn Iterator<Item = &str>| {
            let mut found: Vec<String> = Vec::new();
            for id in ids.filter(|id| id.starts_with("RayCluster/")).filter(|id| !is_known(id)) {
                let part = id.rsplit('-').next().unwrap_or_default().to_owned();
                if !found.contains(&part) {
                    found.push(part);
                }
            }
            found
        };
        let ours = new(&mut self.world.history.iter().map(|(id, _)| id.as_str()));
        let theirs = new(&mut lines.filter_map(|line| line["of"].as_str()));
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            self.pair_attempt(ours, theirs);
        }
    }

    fn pair_attempt(&mut self, ours: String, theirs: String) {
        if ours.is_empty() || !theirs.starts_with('<') {
            return;
        }
        for length in 1..ours.len() {
            // Long names keep a part of the random one only.
            let cut = theirs.replace('>', &format!(" cut to {length}>"));
            let ours = format!("-{}-", &ours[..length]);
            self.attempts.insert(ours.clone(), format!("-{cut}-"));
            self.names.insert(ours, format!("-{cut}-"));
        }
        self.names.insert(ours.clone(), theirs.clone());
        self.attempts.insert(ours, theirs);
    }

    /// Pairs our objects with recorded ones: those that were there before, and the new ones.
    fn rename(&mut self) {
        self.rename_attempts();
        let of_attempt = |id: &String| {
            let part = random_part(id, "<r");
            !part.ends_with('>') || self.attempts.values().any(|theirs| *theirs == part)
        };
        let mut theirs: Vec<(String, &String)> = self
            .expected
            .iter()
            .filter(|(id, object)| id.contains("<r") && !of_attempt(id) && !is_of_job(object))
            .map(|(id, object)| (key(id, object, self.known.contains(id)), id))
            .collect();
        theirs.sort();
        let tokens = self.names.keys().filter(|token| !self.attempts.contains_key(*token));
        let tokens: Vec<&String> = tokens.collect();
        let known = |id: &String| tokens.iter().any(|token| id.contains(token.as_str()));
        let mut ours: Vec<(String, &String)> = self
            .world
            .objects
            .iter()
            .filter(|(id, object)| id.contains(TOKEN) && !is_of_job(object))
            .map(|(id, object)| {
                let named = self
                    .attempts
                    .iter()
                    .fold(id.clone(), |id, (ours, theirs)| id.replace(ours.as_str(), theirs));
                (key(&named, object, known(id)), id)
            })
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
        serde_json::from_str(&self.renamed_text(&object.to_string())).expect("an object")
    }

    fn renamed_text(&self, text: &str) -> String {
        let names = self.names.iter();
        names.fold(text.to_owned(), |text, (ours, theirs)| text.replace(ours.as_str(), theirs))
    }

    fn compare_objects(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut ours: BTreeMap<String, Value> = BTreeMap::new();
        for object in self.world.objects.values() {
            let object = self.renamed(object);
            if object["kind"] != "ResourceQuota" && !is_of_job(&object) {
                ours.insert(id(&object), normal(&object));
            }
        }
        for (id, theirs) in self.expected.iter().filter(|(_, it)| !is_of_job(it)) {
            match ours.remove(id) {
                None => found.push(format!("{id} is missing")),
                Some(mut object) => {
                    let mut theirs = normal(theirs);
                    without_early_copies(&mut object, &mut theirs);
                    compare(id, &object, &theirs, &mut found);
                }
            }
        }
        found.extend(ours.keys().map(|id| format!("{id} is not recorded")));
        found
    }

    fn note_requests(&mut self, step: &Value) {
        self.asked.extend(recorded_requests(step));
    }

    /// What heads were asked, each request once.
    fn compare_head(&self, index: usize, step: &Value) -> Vec<String> {
        if self.varies.iter().any(|path| *path == format!("{index}.requests")) {
            return Vec::new();
        }
        let theirs = recorded_requests(step);
        let requests = self.world.head.requests.iter();
        let ours: BTreeSet<String> =
            requests.map(|it| self.renamed_text(it)).map(as_recorded).collect();
        // One more look before a change of the environment depends on the moment.
        let missing = theirs.difference(&ours).filter(|it| !self.asked.contains(*it));
        let missing = missing.map(|it| format!("no request {it}"));
        let more = ours.difference(&theirs).filter(|it| !self.asked.contains(*it));
        let more = more.map(|it| format!("request {it} is not recorded"));
        missing.chain(more).collect()
    }

    /// The recorded states of each object must come in their order. States of milliseconds are not recorded.
    fn compare_history(&self, step: &Value) -> Vec<String> {
        let mut theirs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for line in step["history"].as_array().into_iter().flatten() {
            let states = theirs.entry(line["of"].as_str().unwrap_or_default()).or_default();
            states.extend(Some(recorded_state(line)).filter(|state| !state.is_empty()));
            states.dedup();
        }
        let ours: Vec<(String, &String)> =
            self.world.history.iter().map(|(of, state)| (self.renamed_text(of), state)).collect();
        let mut found = Vec::new();
        for (of, states) in theirs {
            let own: Vec<&String> =
                ours.iter().filter(|(ours, _)| ours == of).map(|it| it.1).collect();
            let mut rest = own.iter();
            let missing = states.iter().find(|state| !rest.any(|own| own == state));
            found.extend(missing.map(|it| format!("{of}: no state {it:?}, ours {own:?}")));
        }
        found
    }

    /// Of the objects that came and went, Jobs are compared: they are the operator's.
    fn compare_passed(&self, passed: &Value) -> Vec<String> {
        let mut found = Vec::new();
        for (id, theirs) in passed.as_object().into_iter().flatten() {
            if !id.starts_with("Job/") {
                continue;
            }
            let mut ours = self.world.passed.values().map(|object| self.renamed(object));
            match ours.find(|object| self::id(object) == *id) {
                None => found.push(format!("{id} did not pass")),
                Some(ours) => compare(id, &normal(&ours), &normal(theirs), &mut found),
            }
        }
        found
    }

    fn compare_events(&mut self, step: &Value) -> Vec<String> {
        let recorded = step["events"].as_array().map_or(&[][..], Vec::as_slice);
        let events = self.world.events.iter().map(|(about, event)| OurEvent {
            about: self.renamed_text(about),
            reason: event.reason,
            warning: event.warning,
            message: self.renamed_text(&event.message),
        });
        let (found, n_exempt) = compare_events(&events.collect::<Vec<_>>(), recorded);
        self.n_exempt += n_exempt;
        found
    }
}

/// Takes a difference for equal (`equal:health-of-a-proxy`).
fn as_recorded(request: String) -> String {
    let Some((begin, rest)) = request.split_once("//") else { return request };
    match rest.split_once(':') {
        Some((_, end)) if end.contains(HEALTH) => format!("{begin}//<head pod ip>:{end}"),
        _ => request,
    }
}

/// The random part of a name that an object gave: what follows its own name.
fn attempt(object: &Value, name: &Value) -> String {
    let prefix = object["metadata"]["name"].as_str().unwrap_or_default();
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix(prefix).unwrap_or_default().trim_start_matches('-').to_owned()
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
