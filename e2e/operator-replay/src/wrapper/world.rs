//! A namespace in memory, second by second: it stores what the operator makes, and runs it.

use std::collections::{BTreeMap, BTreeSet};

use appwrapper::{
    AllowedComponents, WrapperFacts, decide,
    names::AUTOPILOT_LABEL,
    settings::WrapperSettings,
    step::{WrapperAnswer, WrapperRefusal, WrapperStep},
};
use jiff::{SignedDuration, Timestamp};
use jobs::Kinds;
use serde_json::{Value, json};

use super::{pods, ray_objects};

/// Seconds without a change after which a step is over.
const QUIET: usize = 7;

/// The most pods that a controller makes at a time.
const MOST_PODS: i64 = 10;

/// The most seconds of a step.
const LONGEST: usize = 300;

/// Objects by id (`Kind/name`), and what happened to them.
pub(crate) struct WrapperWorld {
    pub(crate) objects: BTreeMap<String, Value>,
    pub(crate) passed: BTreeSet<String>,
    pub(crate) events: Vec<(String, String)>,
    pub(crate) node_labels: BTreeMap<String, Value>,
    /// What Ray heads answer: `dashboard.set` of the recording, merged.
    pub(crate) head: Value,
    components: AllowedComponents,
    settings: WrapperSettings,
    now: Timestamp,
    /// Seconds until a pod starts.
    delay: i64,
    due: Option<Timestamp>,
    is_triggered: bool,
    n_names: usize,
    n_created: u64,
}

pub(crate) fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn refused(why: WrapperRefusal, message: &str) -> WrapperAnswer {
    WrapperAnswer::Refused { why, message: message.to_owned() }
}

impl WrapperWorld {
    pub(crate) fn new(settings: WrapperSettings, delay: i64) -> Self {
        Self {
            objects: BTreeMap::new(),
            passed: BTreeSet::new(),
            events: Vec::new(),
            node_labels: BTreeMap::new(),
            head: json!({}),
            components: Kinds::built_in().as_components(),
            settings,
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
            delay,
            due: None,
            is_triggered: false,
            n_names: 0,
            n_created: 0,
        }
    }

    pub(crate) fn begin(&mut self) {
        self.events.clear();
        self.passed.clear();
        self.is_triggered = true;
    }

    pub(crate) fn trigger(&mut self) {
        self.is_triggered = true;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Labels a node. Of the labels the operator reads that of Autopilot.
    pub(crate) fn label_node(&mut self, operation: &Value) {
        let health = &operation["labels"][AUTOPILOT_LABEL];
        if !health.is_null() {
            self.node_labels.insert(self.node(operation), health.clone());
        }
    }

    /// Takes labels from one node, or from all.
    pub(crate) fn unlabel_nodes(&mut self, operation: &Value) {
        let mut labels = operation["labels"].as_array().into_iter().flatten();
        if !labels.any(|label| label == AUTOPILOT_LABEL) {
            return;
        }
        if operation["node"].is_null() && operation["ofPod"].is_null() {
            self.node_labels.clear();
        } else {
            self.node_labels.remove(&self.node(operation));
        }
    }

    /// The node of an operation: by its name, or that of a pod.
    fn node(&self, operation: &Value) -> String {
        let pod = operation["ofPod"].as_str().unwrap_or_default();
        let pod = self.objects.get(&format!("Pod/{pod}"));
        let of_pod = pod.and_then(|pod| pod["spec"]["nodeName"].as_str());
        of_pod.or(operation["node"].as_str()).unwrap_or("node-1").to_owned()
    }

    pub(crate) fn create(&mut self, mut object: Value) -> WrapperAnswer {
        if let Some(refusal) = self.refusal(&object) {
            return refusal;
        }
        let id = id(&object);
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(format!("<uid of {id}>"));
        metadata["namespace"] = json!("<ns>");
        self.n_created += 1;
        metadata["resourceVersion"] = json!(self.n_created.to_string());
        metadata["creationTimestamp"] = json!(self.now.to_string());
        ray_objects::complete(&mut object);
        self.objects.insert(id, object.clone());
        WrapperAnswer::Done(object)
    }

    /// The agent makes objects of the kinds that it was set up for.
    fn create_component(&mut self, object: Value) -> WrapperAnswer {
        let [api_version, kind] =
            ["apiVersion", "kind"].map(|at| object[at].as_str().unwrap_or_default());
        match self.components.refusal(api_version, kind) {
            Some(message) => refused(WrapperRefusal::UnknownKind, &message),
            None => self.create(object),
        }
    }

    fn refusal(&self, object: &Value) -> Option<WrapperAnswer> {
        let kind = object["kind"].as_str()?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            let message = format!(
                "{kind} \"\" is invalid: metadata.name: Required value: name or generateName is required"
            );
            return Some(refused(WrapperRefusal::Invalid, &message));
        }
        if self.objects.contains_key(&id(object)) {
            return Some(refused(WrapperRefusal::Other, "already exists"));
        }
        if kind == "Pod" && self.objects.keys().any(|id| id.starts_with("ResourceQuota/")) {
            let message = format!(
                "pods \"{name}\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
            );
            return Some(refused(WrapperRefusal::Other, &message));
        }
        if kind == "Service" && object["spec"]["ports"].as_array().is_none_or(Vec::is_empty) {
            let message = format!("Service \"{name}\" is invalid: spec.ports: Required value");
            return Some(refused(WrapperRefusal::Invalid, &message));
        }
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let mut values = labels.filter_map(|(_, value)| value.as_str());
        let value = values.find(|value| value.len() > 63)?;
        let message = format!(
            "Pod \"{name}\" is invalid: metadata.labels: Invalid value: \"{value}\": must be no more than 63 bytes"
        );
        Some(refused(WrapperRefusal::Invalid, &message))
    }

    /// Marks an object as deleted, or removes it.
    pub(crate) fn delete(&mut self, id: &str, force: bool) {
        let Some(object) = self.objects.get_mut(id) else { return };
        let is_held = object["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty());
        let is_slow = object["kind"] == "Pod" && pods::stop_seconds(object) > 0 && !force;
        if (is_held && object["kind"] == "AppWrapper") || is_slow {
            if object["metadata"]["deletionTimestamp"].is_null() {
                object["metadata"]["deletionTimestamp"] = json!(self.now.to_string());
            }
            return;
        }
        self.objects.remove(id);
        self.passed.insert(id.to_owned());
    }

    /// Lets time pass until nothing has changed for some seconds.
    pub(crate) fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..LONGEST {
            let before = self.objects.clone();
            self.second();
            quiet = if self.objects == before { quiet + 1 } else { 0 };
            if quiet == QUIET {
                return;
            }
        }
    }

    /// One second: all that happens at once, and then the clock.
    pub(crate) fn second(&mut self) {
        for _ in 0..40 {
            let before = self.objects.clone();
            self.environment();
            // With a negative delay pods are quicker than the operator.
            for _ in 0..if self.delay < 0 { 4 } else { 0 } {
                self.environment();
            }
            let is_due = self.due.is_some_and(|due| due <= self.now);
            if self.is_triggered || is_due {
                self.is_triggered = false;
                self.reconcile();
            } else if self.objects == before {
                break;
            }
        }
        self.now += SignedDuration::from_secs(1);
    }

    /// Lets the operator look at everything once, while nothing else moves.
    #[cfg(test)]
    pub(crate) fn look(&mut self) {
        self.reconcile();
    }

    fn reconcile(&mut self) {
        self.due = None;
        let ids: Vec<String> =
            self.objects.keys().filter(|id| id.starts_with("AppWrapper/")).cloned().collect();
        for id in ids {
            let before = self.objects.get(&id).cloned();
            self.one_pass(&id);
            self.is_triggered |= self.objects.get(&id) != before.as_ref();
        }
    }

    fn one_pass(&mut self, id: &str) {
        let wrapper = self.objects[id].clone();
        let children: Vec<Value> = self.objects.values().cloned().collect();
        let children: Vec<&Value> = children.iter().collect();
        let evicted =
            self.node_labels.iter().filter(|(_, labels)| labels.as_str() == Some("EVICT"));
        let gpu = BTreeSet::from(["nvidia.com/gpu".to_owned()]);
        let evicted_nodes = evicted.map(|(node, _)| (node.clone(), gpu.clone())).collect();
        let facts = WrapperFacts { now: self.now, evicted_nodes };
        let mut answers = Vec::new();
        loop {
            let steps = decide(&wrapper, &children, &answers, &facts, &self.settings);
            if !steps.iter().any(WrapperStep::is_order) {
                self.finish(id, steps);
                return;
            }
            for step in steps {
                let answer = self.answer(id, step);
                let is_refused = matches!(answer, WrapperAnswer::Refused { .. });
                answers.push(answer);
                if is_refused {
                    break;
                }
            }
        }
    }

    fn answer(&mut self, id: &str, step: WrapperStep) -> WrapperAnswer {
        match step {
            WrapperStep::Create(object) => self.create_component(object),
            WrapperStep::Patch(patch) => {
                let Some(object) = self.objects.get_mut(id) else {
                    return refused(WrapperRefusal::NotFound, "not found");
                };
                json_patch::merge(object, &patch);
                let object = object.clone();
                let is_free = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
                if is_free && !object["metadata"]["deletionTimestamp"].is_null() {
                    self.objects.remove(id);
                }
                WrapperAnswer::Done(object)
            }
            WrapperStep::Delete { kind, name, force, .. } => {
                self.delete(&format!("{kind}/{name}"), force);
                WrapperAnswer::Done(Value::Null)
            }
            other => unreachable!("{other:?} is no order"),
        }
    }

    fn finish(&mut self, id: &str, steps: Vec<WrapperStep>) {
        for step in steps {
            match step {
                WrapperStep::ReplaceStatus(status) => {
                    if let Some(object) = self.objects.get_mut(id) {
                        object["status"] = status;
                    }
                }
                WrapperStep::Event { reason, message } => {
                    self.events.push((reason.to_owned(), message));
                }
                WrapperStep::RequeueAfter(after) => {
                    let after = SignedDuration::try_from(after).expect("a duration");
                    let due = self.now + after;
                    self.due = Some(self.due.map_or(due, |before| before.min(due)));
                }
                order => unreachable!("{order:?} is an order"),
            }
        }
    }

    fn environment(&mut self) {
        let uids: BTreeSet<String> =
            self.objects.keys().map(|id| format!("<uid of {id}>")).collect();
        for id in self.objects.keys().cloned().collect::<Vec<_>>() {
            let Some(object) = self.objects.get(&id).cloned() else { continue };
            let owners =
                object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            let is_orphan = !owners.is_empty()
                && owners.iter().all(|it| !uids.contains(it["uid"].as_str().unwrap_or_default()));
            if is_orphan {
                self.delete(&id, false);
                continue;
            }
            match object["kind"].as_str() {
                Some("Pod") => self.kubelet(&id),
                Some("Job") => self.job(&id, &object),
                Some("RayJob") => self.ray_job(&id, &object),
                _ => self.make_pods(&object),
            }
        }
    }

    fn made(&self, owner: &Value) -> Vec<&Value> {
        let uid = &owner["metadata"]["uid"];
        let pods = self.objects.values().filter(|object| object["kind"] == "Pod");
        pods.filter(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == *uid).collect()
    }

    fn make_pods(&mut self, owner: &Value) {
        let templates = pods::templates(owner);
        if templates.is_empty() {
            return;
        }
        let wanted: i64 = templates.iter().map(|(_, count)| count).sum();
        let living: Vec<String> = self
            .made(owner)
            .iter()
            .filter(|pod| pod["status"]["phase"] != "Failed")
            .map(|pod| id(pod))
            .collect();
        let count = i64::try_from(living.len()).unwrap_or_default();
        for surplus in living.iter().skip(usize::try_from(wanted).unwrap_or_default()) {
            self.delete(surplus, false);
        }
        let mut missing = (wanted - count).min(MOST_PODS);
        for (template, _) in templates.iter().flat_map(|it| {
            std::iter::repeat_n(it, usize::try_from(it.1.min(MOST_PODS)).unwrap_or_default())
        }) {
            if missing > 0 {
                missing -= 1;
                self.n_names += 1;
                let _ = self.create(pods::pod(template, owner, self.n_names));
            }
        }
    }

    fn job(&mut self, job_id: &str, job: &Value) {
        let spec = &job["spec"];
        let count = |phase: &str| {
            let pods = self.made(job);
            i64::try_from(pods.iter().filter(|pod| pod["status"]["phase"] == phase).count())
                .unwrap_or_default()
        };
        let (failed, succeeded) = (count("Failed"), count("Succeeded"));
        let living = i64::try_from(self.made(job).len()).unwrap_or_default() - failed - succeeded;
        let parallelism = spec["parallelism"].as_i64().unwrap_or(1);
        let completions = spec["completions"].as_i64().unwrap_or(parallelism);
        let backoff = spec["backoffLimit"].as_i64().unwrap_or(6);
        let ended = if failed > backoff {
            Some("Failed")
        } else if succeeded >= completions {
            Some("Complete")
        } else {
            None
        };
        if let Some(ended) = ended {
            if let Some(job) = self.objects.get_mut(job_id) {
                job["status"] = json!({"conditions": [{"type": ended, "status": "True"}]});
            }
            return;
        }
        let missing = parallelism.min(completions - succeeded) - living;
        // A failed pod is replaced with a growing delay; here with none until the case is over.
        if failed > 0 {
            return;
        }
        for _ in 0..missing.min(MOST_PODS) {
            self.n_names += 1;
            let _ = self.create(pods::pod(&spec["template"], job, self.n_names));
        }
    }

    /// A RayJob has a RayCluster, of which the head reports the state of the job once all pods run.
    fn ray_job(&mut self, job_id: &str, job: &Value) {
        let uid = &job["metadata"]["uid"];
        let is_its = |it: &&Value| {
            it["kind"] == "RayCluster" && it["metadata"]["ownerReferences"][0]["uid"] == *uid
        };
        let cluster = self.objects.values().find(is_its).cloned();
        if ray_objects::has_ended(job) {
            let is_over = ray_objects::is_without_cluster(job, self.now);
            if let Some(cluster) = cluster.filter(|_| is_over) {
                self.delete(&id(&cluster), false);
            }
            return;
        }
        if job["spec"]["suspend"] == true {
            return;
        }
        let Some(cluster) = cluster else {
            if job["spec"]["rayClusterSpec"].is_object() {
                self.n_names += 1;
                let _ = self.create(ray_objects::cluster(job, self.n_names));
            }
            return;
        };
        let wanted: i64 = pods::templates(&cluster).iter().map(|it| it.1).sum();
        let pods = self.made(&cluster);
        let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
        let is_ready = i64::try_from(running).is_ok_and(|running| running >= wanted);
        if let Some(job) = self.objects.get_mut(job_id) {
            ray_objects::report(job, is_ready, &self.head, self.now);
        }
    }

    fn kubelet(&mut self, id: &str) {
        let marked = self.node_labels.values().any(|it| it == "EVICT" || it == "TESTING");
        let (delay, now) = (self.delay, self.now);
        let Some(pod) = self.objects.get_mut(id) else { return };
        let since = |value: &Value| {
            let since = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
            now.as_second() - since.unwrap_or(now).as_second()
        };
        let deleted = &pod["metadata"]["deletionTimestamp"];
        if !deleted.is_null() {
            if since(deleted) >= pods::stop_seconds(pod) {
                self.objects.remove(id);
                self.passed.insert(id.to_owned());
            }
            return;
        }
        let age = since(&pod["metadata"]["creationTimestamp"]);
        if pods::run(pod, age, delay, marked, now) {
            self.is_triggered = true;
        }
    }
}
