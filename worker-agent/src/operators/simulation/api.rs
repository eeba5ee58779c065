//! The API server: objects, versions, finalizers, and the order of changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::request::{OperatorAnswer, OperatorRequest, refusal};
use crate::operators::object_cache::ObjectId;

/// A change, as a watch reports it: the object, or nothing once it is gone.
pub(super) type LoggedChange = (ObjectId, Option<Arc<Value>>);

/// The quota of pods.
const MOST_PODS: usize = 20;

/// The simulated API server.
#[derive(Default)]
pub(super) struct SimulatedApi {
    pub(super) objects: BTreeMap<ObjectId, Value>,
    /// Every change since the beginning.
    pub(super) log: Vec<LoggedChange>,
    /// Reason and note of every event.
    pub(super) events: Vec<(String, String)>,
    /// What must never be true and was.
    pub(super) violations: BTreeSet<String>,
    /// Kinds of which every request is refused with this code.
    pub(super) refused: BTreeMap<String, u16>,
    /// When this object is patched, its user has just replaced it by another one.
    pub(super) successor: Option<Value>,
    pub(super) now: Timestamp,
    /// The number of changes when the environment moved the last time.
    pub(super) n_moved: usize,
    n_created: u64,
}

/// Names the object, as the API server does: otherwise it would not be known to be absent.
fn not_found(request: &OperatorRequest) -> OperatorAnswer {
    let (code, mut status) = refusal(404, "NotFound", &format!("{} not found", request.line()));
    status["details"] = json!({"kind": request.id.kind, "name": &*request.id.key.name});
    (code, status)
}

impl SimulatedApi {
    pub(super) fn answer(&mut self, request: &OperatorRequest) -> OperatorAnswer {
        if let Some(code) = self.refused.get(&request.id.kind) {
            return refusal(*code, "Refused", "refused by the test");
        }
        if request.method == "PATCH" {
            self.replace(&request.id);
        }
        let known = self.objects.get(&request.id).cloned();
        match (request.method.as_str(), known) {
            ("POST", _) if request.id.kind == "Event" => self.record(&request.body),
            ("POST", _) => self.create(request),
            ("PATCH", None) if request.is_apply => self.create(request),
            (_, None) => not_found(request),
            ("GET", Some(object)) => (200, object),
            ("PATCH", Some(object)) => self.patch(request, object),
            ("DELETE", Some(object)) => self.delete_request(request, &object),
            (method, _) => refusal(405, "MethodNotAllowed", method),
        }
    }

    fn replace(&mut self, id: &ObjectId) {
        if let Some(successor) = self.successor.take_if(|it| ObjectId::of(it) == *id) {
            self.remove(id);
            self.store(successor);
        }
    }

    fn record(&mut self, event: &Value) -> OperatorAnswer {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        self.events.push((text("reason"), text("note")));
        (201, event.clone())
    }

    fn create(&mut self, request: &OperatorRequest) -> OperatorAnswer {
        let mut object = request.body.clone();
        self.n_created += 1;
        let metadata = &mut object["metadata"];
        if metadata["name"].is_null() {
            let prefix = metadata["generateName"].as_str().unwrap_or_default();
            if prefix.is_empty() {
                let why = "metadata.name: Required value: name or generateName is required";
                return refusal(422, "Invalid", why);
            }
            metadata["name"] = json!(format!("{prefix}{:05}", self.n_created));
        }
        metadata["namespace"] = json!(request.id.key.namespace.as_deref());
        metadata["uid"] = json!(format!("uid-{}", self.n_created));
        metadata["generation"] = json!(1);
        metadata["creationTimestamp"] = json!(self.now.to_string());
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let id = ObjectId::of(&object);
        if id.kind == "Pod" && self.of_kind("Pod").count() >= MOST_PODS {
            return refusal(403, "Forbidden", "exceeded quota: pods");
        }
        if self.objects.contains_key(&id) {
            let message = format!("{} \"{}\" already exists", id.kind, id.key.name);
            return refusal(409, "AlreadyExists", &message);
        }
        (201, self.store(object))
    }

    fn patch(&mut self, request: &OperatorRequest, before: Value) -> OperatorAnswer {
        let version = &request.body["metadata"]["resourceVersion"];
        if !version.is_null() && *version != before["metadata"]["resourceVersion"] {
            return refusal(409, "Conflict", "the object has been modified");
        }
        let uid = &request.body["metadata"]["uid"];
        if !uid.is_null() && *uid != before["metadata"]["uid"] {
            return refusal(422, "Invalid", "metadata.uid: Invalid value: field is immutable");
        }
        let mut object = before.clone();
        json_patch::merge(&mut object, &request.body);
        // A status is written by its subresource only, and the rest is not.
        if request.is_status {
            let status = object["status"].clone();
            object = before.clone();
            object["status"] = status;
        } else {
            object["status"] = before["status"].clone();
        }
        object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        if object["spec"] != before["spec"] {
            let generation = before["metadata"]["generation"].as_u64().unwrap_or_default();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        // A write without a change has no event.
        if object == before {
            return (200, before);
        }
        (200, self.store(object))
    }

    fn delete_request(&mut self, request: &OperatorRequest, object: &Value) -> OperatorAnswer {
        let wanted = &request.body["preconditions"]["uid"];
        if !wanted.is_null() && *wanted != object["metadata"]["uid"] {
            return refusal(409, "Conflict", "the uid in the precondition is another one");
        }
        match request.id.kind.as_str() {
            "Pod" if request.body["gracePeriodSeconds"] == 0 => self.remove(&request.id),
            _ => self.delete(&request.id),
        }
        (200, json!({"kind": "Status", "status": "Success"}))
    }

    /// Marks an object as deleted, or removes it if nothing holds it.
    pub(super) fn delete(&mut self, id: &ObjectId) {
        let Some(mut object) = self.objects.get(id).cloned() else { return };
        let is_held = !is_free(&object) || id.kind == "Pod";
        if !is_held {
            self.remove(id);
        } else if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(self.now.to_string());
            self.store(object);
        }
    }

    pub(super) fn remove(&mut self, id: &ObjectId) {
        if self.objects.remove(id).is_some() {
            self.log.push((id.clone(), None));
        }
    }

    /// Stores an object with the next version, and removes one that was only held by its finalizers.
    pub(super) fn store(&mut self, mut object: Value) -> Value {
        let version = self.log.len() + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let id = ObjectId::of(&object);
        self.objects.insert(id.clone(), object.clone());
        self.log.push((id.clone(), Some(Arc::new(object.clone()))));
        let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
        if is_deleted && is_free(&object) && id.kind != "Pod" {
            self.remove(&id);
        }
        self.check_heads();
        object
    }

    /// Changes an object as its user or a controller would.
    pub(super) fn change(&mut self, id: &ObjectId, change: impl FnOnce(&mut Value)) {
        let Some(mut object) = self.objects.get(id).cloned() else { return };
        let before = object.clone();
        change(&mut object);
        if object != before {
            self.store(object);
        }
    }

    pub(super) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |(id, _)| id.kind == kind).map(|(_, object)| object)
    }

    /// No RayCluster has two heads, not even for a moment.
    fn check_heads(&mut self) {
        let mut heads: BTreeMap<String, usize> = BTreeMap::new();
        for pod in self.of_kind("Pod") {
            let is_head = pod["metadata"]["labels"]["ray.io/node-type"] == "head"
                && pod["metadata"]["deletionTimestamp"].is_null();
            if is_head {
                let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
                *heads.entry(owner.to_string()).or_default() += 1;
            }
        }
        let twice = heads.into_iter().filter(|(_, count)| *count > 1);
        let twice = twice.map(|(owner, count)| format!("{count} heads of the cluster {owner}"));
        self.violations.extend(twice);
    }
}

fn is_free(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// The objects that a list shows once the first `n` changes have happened.
pub(super) fn listed(log: &[LoggedChange], n: usize) -> BTreeMap<ObjectId, Arc<Value>> {
    let mut objects = BTreeMap::new();
    for (id, object) in log.iter().take(n) {
        match object {
            Some(object) => objects.insert(id.clone(), Arc::clone(object)),
            None => objects.remove(id),
        };
    }
    objects
}
