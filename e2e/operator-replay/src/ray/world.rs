//! A namespace in memory: it stores what the operator makes, runs its pods, and removes what has no owner.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use ray::{
    PassInputs, cluster, job, service,
    service::ServiceMemory,
    settings::OperatorSettings,
    step::{ObjectTarget, RayAnswer, RayEvent, RayRefusal, RayStep},
};
use serde_json::{Value, json};

use super::{
    api_defaults::{complete_gateway, complete_ray_cluster, complete_service},
    head::PlayedHead,
    jobs, kubelet,
    refusals::refusal,
    states::state_of,
};
use crate::operations::version;

/// Random parts of names begin with this, so that they can be found again.
pub(crate) const TOKEN: &str = "zq";

/// The most rounds until nothing moves any more.
const ROUNDS: usize = 400;

/// The time without a change after which the recorder took a step for over.
const REST: SignedDuration = SignedDuration::from_secs(5);

/// The kinds of the operator. They are let go when no finalizer is left.
const PARENTS: [&str; 3] = ["RayCluster", "RayJob", "RayService"];

/// Objects by id (`Kind/name`), and what happened to them.
pub(crate) struct RayWorld {
    pub(crate) objects: BTreeMap<String, Value>,
    pub(crate) passed: BTreeMap<String, Value>,
    /// By the id of the object that each is about.
    pub(crate) events: Vec<(String, RayEvent)>,
    pub(crate) settings: OperatorSettings,
    /// Every Ray head.
    pub(crate) head: PlayedHead,
    /// The states that each object of the operator had in this step.
    pub(crate) history: Vec<(String, String)>,
    pub(crate) now: Timestamp,
    pace: Pace,
    /// When something moved the last time.
    moved: Timestamp,
    due: BTreeMap<String, Timestamp>,
    memories: BTreeMap<String, ServiceMemory>,
    n_names: usize,
    n_created: u64,
    deleted_now: BTreeSet<String>,
    /// Since when pods run.
    started: BTreeMap<String, Timestamp>,
    /// Everything that was ordered.
    #[cfg(test)]
    pub(crate) orders: Vec<RayStep>,
}

/// How time passes: rounds of a length while something moves, and the time without a change that counts as rest.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    round: SignedDuration,
    quiet: SignedDuration,
}

impl Pace {
    /// For decisions that do not depend on the time.
    pub(crate) const COARSE: Self =
        Self { round: SignedDuration::from_secs(2), quiet: SignedDuration::ZERO };

    /// For RayServices: the time that the recorder waited.
    pub(crate) const SERVICE: Self =
        Self { round: SignedDuration::from_millis(200), quiet: SignedDuration::from_secs(7) };

    /// For deadlines of RayJobs: the time that the recorder waited.
    pub(crate) const FINE: Self =
        Self { round: SignedDuration::from_millis(200), quiet: SignedDuration::from_secs(8) };
}

pub(crate) fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

impl RayWorld {
    #[cfg(test)]
    pub(crate) fn new(settings: OperatorSettings) -> Self {
        Self::at(settings, Pace::COARSE)
    }

    pub(crate) fn at(settings: OperatorSettings, pace: Pace) -> Self {
        Self {
            head: PlayedHead::default(),
            history: Vec::new(),
            pace,
            due: BTreeMap::new(),
            memories: BTreeMap::new(),
            objects: BTreeMap::new(),
            passed: BTreeMap::new(),
            events: Vec::new(),
            settings,
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
            moved: Timestamp::UNIX_EPOCH,
            n_names: 0,
            n_created: 0,
            deleted_now: BTreeSet::new(),
            started: BTreeMap::new(),
            #[cfg(test)]
            orders: Vec::new(),
        }
    }

    /// Begins a step: events and passed objects are those of one step.
    pub(crate) fn begin(&mut self) {
        self.passed.clear();
        self.moved = self.now;
        self.events.clear();
        self.history.clear();
        let is_parent = |id: &str| PARENTS.iter().any(|kind| id.split('/').next() == Some(kind));
        for (id, object) in self.objects.iter().filter(|(id, _)| is_parent(id)) {
            self.history.push((id.clone(), state_of(id, &object["status"])));
        }
        self.due.clear();
        self.head.requests.clear();
        self.deleted_now.clear();
    }

    /// Stores a new object, or refuses it as an API server would.
    pub(crate) fn create(&mut self, mut object: Value) -> RayAnswer {
        if let Some(refusal) = refusal(&self.objects, &object) {
            return RayAnswer::Refused(refusal);
        }
        let metadata = &mut object["metadata"];
        // The recording has random names for these pods, which it knows by their token.
        if metadata["name"].is_null() || metadata["generateName"].is_string() {
            self.n_names += 1;
            let prefix = metadata["generateName"].as_str().unwrap_or_default();
            metadata["name"] = json!(format!("{prefix}{TOKEN}{:03}", self.n_names));
        }
        self.n_created += 1;
        metadata["resourceVersion"] = json!(self.n_created.to_string());
        metadata["creationTimestamp"] = json!(self.now.to_string());
        metadata["namespace"] = json!("<ns>");
        let id = id(&object);
        object["metadata"]["uid"] = json!(format!("<uid of {id}>"));
        object["metadata"]["generation"] = json!(1);
        complete_service(&mut object);
        complete_ray_cluster(&mut object);
        complete_gateway(&mut object);
        self.objects.insert(id, object.clone());
        RayAnswer::Done(object.into())
    }

    fn children(&self, parent: &str) -> Vec<Value> {
        let mut children: Vec<Value> =
            self.objects.values().filter(|it| it["kind"] != parent).cloned().collect();
        children.sort_by_key(version);
        children
    }

    fn answer(&mut self, step: &RayStep) -> RayAnswer {
        #[cfg(test)]
        self.orders.push(step.clone());
        match step {
            RayStep::Create(object) | RayStep::CreateAuthority(object) => {
                self.create(object.clone())
            }
            RayStep::Apply(object) => {
                if self.objects.contains_key(&id(object)) {
                    self.patch(&ObjectTarget::of(object), object)
                } else {
                    self.create(object.clone())
                }
            }
            RayStep::Patch { target, patch } => self.patch(target, patch),
            RayStep::Delete(target) => {
                self.delete(&format!("{}/{}", target.kind, target.name));
                RayAnswer::Done(Value::Null.into())
            }
            RayStep::Ask(request) => RayAnswer::Head(self.head.answer(request, self.now)),
            other => unreachable!("{other:?} is no order"),
        }
    }

    fn patch(&mut self, target: &ObjectTarget, patch: &Value) -> RayAnswer {
        let id = format!("{}/{}", target.kind, target.name);
        match self.objects.get_mut(&id) {
            Some(object) => {
                json_patch::merge(object, patch);
                RayAnswer::Done(object.clone().into())
            }
            None => {
                RayAnswer::Refused(RayRefusal { code: 404, message: format!("{id} not found") })
            }
        }
    }

    /// Marks an object as deleted, or removes it if nothing holds it.
    pub(crate) fn delete(&mut self, id: &str) {
        let Some(object) = self.objects.get_mut(id) else { return };
        let is_held = object["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty())
            && object["kind"] != "PersistentVolumeClaim";
        let is_parent = PARENTS.iter().any(|kind| object["kind"] == *kind);
        if object["kind"] == "Pod" || is_held || is_parent {
            if object["metadata"]["deletionTimestamp"].is_null() {
                object["metadata"]["deletionTimestamp"] = json!(self.now.to_string());
                self.deleted_now.insert(id.to_owned());
            }
            return;
        }
        self.remove(id);
    }

    fn remove(&mut self, id: &str) {
        let Some(object) = self.objects.remove(id) else { return };
        self.started.remove(id);
        self.passed.insert(id.to_owned(), object);
        // At once, because an object of the same name has the same uid here.
        let uid = json!(format!("<uid of {id}>"));
        let is_its = |it: &Value| it["metadata"]["ownerReferences"][0]["uid"] == uid;
        let children = self.objects.iter().filter(|(_, it)| is_its(it));
        for child in children.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.delete(&child);
        }
    }

    /// Lets the operator and the environment work until nothing moves any more. Returns whether it came to rest.
    pub(crate) fn settle(&mut self) -> bool {
        for _ in 0..ROUNDS {
            if self.round() {
                continue;
            }
            let end = self.moved + self.pace.quiet;
            if self.now >= end {
                return true;
            }
            self.skip_to(end);
        }
        false
    }

    /// Nothing moves before the next pass, a pod or a Job ends, or a controller of the environment ends its backoff.
    fn skip_to(&mut self, end: Timestamp) {
        let backs_off = |it: &Value| it["kind"] == "Job" && !it["status"]["since"].is_null();
        if !self.objects.values().any(backs_off) {
            let ends = self.objects.iter().filter_map(|(id, object)| self.ends_at(id, object));
            let next = self.due.values().copied().chain(ends).min().unwrap_or(end);
            self.now = self.now.max(next.min(end));
        }
    }

    /// When a pod or a Job ends because of the time.
    fn ends_at(&self, id: &str, object: &Value) -> Option<Timestamp> {
        match object["kind"].as_str() {
            Some("Job") => jobs::deadline(object),
            Some("Pod") if object["metadata"]["deletionTimestamp"].is_null() => {
                kubelet::ends_at(object, *self.started.get(id)?)
            }
            Some("Pod") if !kubelet::stop_time(object).is_zero() => kubelet::stops_at(object),
            _ => None,
        }
    }

    /// Lets time pass until a condition holds, at most so many seconds.
    pub(crate) fn run_until(&mut self, seconds: i64, mut holds: impl FnMut(&Self) -> bool) {
        let end = self.now + SignedDuration::from_secs(seconds);
        while self.now < end && !holds(self) {
            if !self.round() {
                self.skip_to(end);
            }
        }
    }

    /// Lets the operator look at everything once, while nothing else moves.
    #[cfg(test)]
    pub(crate) fn look(&mut self) {
        self.due.clear();
        self.reconcile();
    }

    /// Lets the operator and the environment work for a while.
    #[cfg(test)]
    pub(crate) fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.round();
        }
    }

    /// Whether anything moved.
    fn round(&mut self) -> bool {
        let before = self.objects.clone();
        self.reconcile();
        self.environment();
        self.now += self.pace.round;
        let moved = self.objects != before;
        if moved {
            self.wake(&before);
            self.moved = self.now;
        }
        moved
    }

    /// A change of an object or of one of its own brings a pass. The status of a RayService that it wrote itself brings none.
    fn wake(&mut self, before: &BTreeMap<String, Value>) {
        let changed: Vec<&String> = self
            .objects
            .iter()
            .filter(|(id, it)| before.get(*id) != Some(*it))
            .map(|it| it.0)
            .collect();
        let is_own_status = |id: &String| {
            let part = |objects: &BTreeMap<String, Value>, name: &str| {
                objects.get(id).map(|object| object[name].clone())
            };
            let same = |name| part(before, name) == part(&self.objects, name);
            id.starts_with("RayService/") && same("spec") && same("metadata")
        };
        match changed.as_slice() {
            [id] if before.len() == self.objects.len() && is_own_status(id) => {}
            _ => self.due.clear(),
        }
    }

    fn reconcile(&mut self) {
        let parents = ["RayService/", "RayJob/", "RayCluster/"];
        for id in parents.iter().flat_map(|kind| self.ids(kind)).collect::<Vec<_>>() {
            if self.due.get(&id).is_none_or(|due| *due <= self.now) {
                self.one_pass(&id);
            }
        }
    }

    pub(crate) fn ids(&self, prefix: &str) -> Vec<String> {
        self.objects.keys().filter(|id| id.starts_with(prefix)).cloned().collect()
    }

    fn one_pass(&mut self, id: &str) {
        let kind = id.split('/').next().expect("a kind");
        let Some(parent) = self.objects.get(id).cloned() else { return };
        let children = self.children(kind);
        let children: Vec<&Value> = children.iter().collect();
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&self.now.as_millisecond().to_le_bytes());
        let inputs = PassInputs { now: self.now, seed };
        let mut answers = Vec::new();
        loop {
            let settings = &self.settings;
            let steps = match kind {
                "RayService" => {
                    let memory = self.memories.entry(id.to_owned()).or_default();
                    service::decide(&parent, &children, memory, &answers, &inputs, settings)
                }
                "RayJob" => job::decide(&parent, &children, &answers, &inputs, settings),
                _ => cluster::decide(&parent, &children, &answers, &inputs, settings),
            };
            if !steps.iter().any(RayStep::is_order) {
                self.finish(id, steps);
                return;
            }
            for step in &steps {
                let answer = self.answer(step);
                let refused = matches!(answer, RayAnswer::Refused(_));
                answers.push(answer);
                if refused {
                    break;
                }
            }
        }
    }

    fn finish(&mut self, id: &str, steps: Vec<RayStep>) {
        self.due.insert(id.to_owned(), Timestamp::MAX);
        for step in steps {
            match step {
                RayStep::ReplaceStatus(status) => {
                    self.history.push((id.to_owned(), state_of(id, &status)));
                    if let Some(object) = self.objects.get_mut(id) {
                        object["status"] = status;
                    }
                }
                RayStep::Event(event) => self.events.push((id.to_owned(), event)),
                RayStep::Remember(memory) => {
                    self.memories.insert(id.to_owned(), memory);
                }
                RayStep::RequeueAfter(after) => {
                    let after = SignedDuration::try_from(after).expect("short");
                    let due = self.due.entry(id.to_owned()).or_insert(Timestamp::MAX);
                    *due = (*due).min(self.now + after);
                }
                order => unreachable!("{order:?} is an order"),
            }
        }
    }

    /// Scheduler, kubelets, Job controller and garbage collector, one move each.
    fn environment(&mut self) {
        let uids: BTreeSet<String> =
            self.objects.keys().map(|id| format!("<uid of {id}>")).collect();
        for id in self.objects.keys().cloned().collect::<Vec<_>>() {
            let Some(object) = self.objects.get(&id) else { continue };
            let orphaned = object["metadata"]["ownerReferences"].as_array().is_some_and(|owners| {
                !owners.is_empty()
                    && owners
                        .iter()
                        .all(|it| !uids.contains(it["uid"].as_str().unwrap_or_default()))
            });
            if orphaned {
                self.delete(&id);
            }
            match id.split('/').next() {
                Some("Pod") => self.kubelet(&id),
                Some("Job") => self.job_controller(&id),
                Some(kind) if PARENTS.contains(&kind) => self.let_go(&id),
                _ => {}
            }
        }
    }

    fn job_controller(&mut self, id: &str) {
        let now = self.now;
        let Some(job) = self.objects.get(id) else { return };
        let name = job["metadata"]["name"].clone();
        let is_its =
            |it: &&Value| it["kind"] == "Pod" && it["metadata"]["labels"]["job-name"] == name;
        let pods: Vec<Value> = self.objects.values().filter(is_its).cloned().collect();
        let Some(job) = self.objects.get_mut(id) else { return };
        let pod = jobs::control(job, &pods, now);
        if jobs::is_too_long(job) {
            for pod in pods.iter().filter(|pod| pod["status"]["phase"] == "Running") {
                self.delete(&self::id(pod));
            }
        }
        if let Some(pod) = pod {
            let _ = self.create(pod);
        }
    }

    fn let_go(&mut self, id: &str) {
        let Some(object) = self.objects.get(id) else { return };
        let is_free = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if is_free && !object["metadata"]["deletionTimestamp"].is_null() {
            self.remove(id);
        }
    }

    fn kubelet(&mut self, id: &str) {
        let (now, started) = (self.now, self.started.get(id).copied());
        let is_stopping = self.is_stopping(id);
        let Some(pod) = self.objects.get_mut(id) else { return };
        if pod["metadata"]["deletionTimestamp"].is_null() {
            kubelet::advance(pod, started.unwrap_or(now), now);
            if pod["status"]["phase"] == "Running" {
                self.started.entry(id.to_owned()).or_insert(now);
            }
            return;
        }
        // The kubelets of the recording never finish a pod in which a container ended by itself.
        let ended = |status: &Value| !status["state"]["terminated"].is_null();
        let statuses = pod["status"]["containerStatuses"].as_array();
        let is_stuck = statuses.is_some_and(|statuses| statuses.iter().any(ended));
        let is_running = pod["status"]["phase"] == "Running";
        if is_stopping || (is_running && is_stuck) {
            return;
        }
        if is_running {
            kubelet::stop(pod);
        } else {
            self.remove(id);
        }
    }

    /// Whether a deleted pod takes its time. A pace without rest leaves out the time that the recorder waited after a step.
    fn is_stopping(&self, id: &str) -> bool {
        let Some(pod) = self.objects.get(id) else { return false };
        let in_step = || kubelet::stop_time(pod) > REST && self.deleted_now.contains(id);
        kubelet::stops_at(pod).is_some_and(|end| self.now < end)
            && (!self.pace.quiet.is_zero() || in_step())
    }
}
