//! Recorded requests on Jobs: their objects, and Kueue's answers.
//!
//! Request bodies are applied to the objects of the setup as the server does; a patch is a merge patch.

#![expect(clippy::panic, reason = "a recording of another shape must fail loudly")]

use std::io::Read;

use jobs::{
    Job, JobGates,
    defaulting::{self, DefaultingFacts},
};
use serde_json::{Value, json};

/// Kueue's answer to a request.
pub(crate) enum RecordedOutcome {
    /// It was accepted.
    Accepted,
    /// A webhook for Jobs refused it, with this message.
    RefusedByWebhook(String),
    /// The server itself refused it.
    RefusedByServer,
}

/// One recorded request.
pub(crate) struct RecordedCase {
    pub(crate) id: String,
    value: Value,
}

/// All recorded requests on Jobs.
pub(crate) fn cases() -> Vec<RecordedCase> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/tests/apioracle/job.jsonl.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the recording is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("the recording is whole");
    let values = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a case"));
    values.map(|value| RecordedCase { id: text_at(&value, "/id"), value }).collect()
}

fn text_at(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl RecordedCase {
    pub(crate) fn outcome(&self) -> RecordedOutcome {
        let by = text_at(&self.value, "/expect/refused_by");
        match by.as_str() {
            "" => RecordedOutcome::Accepted,
            "webhook:vjob.kb.io" => {
                RecordedOutcome::RefusedByWebhook(text_at(&self.value, "/expect/message"))
            }
            "apiserver" => RecordedOutcome::RefusedByServer,
            other => panic!("{}: refused by {other}", self.id),
        }
    }

    /// The webhooks of jobs skip the system namespaces.
    pub(crate) fn reaches_webhooks(&self) -> bool {
        !matches!(self.namespace().as_str(), "kube-system" | "kueue-system")
    }

    pub(crate) fn namespace(&self) -> String {
        let path = text_at(&self.value, "/request/path");
        let mut parts = path.split('/').skip_while(|part| *part != "namespaces");
        parts.nth(1).expect("a namespace").to_owned()
    }

    /// Feature gates of the recording.
    pub(crate) fn gates(&self) -> JobGates {
        let on = JobGates::default();
        match self.config().as_str() {
            "base" => on,
            "variant-1" => JobGates { partial_admission: false, ..on },
            "variant-2" => JobGates {
                topology: false,
                topology_layers: false,
                identifier_annotations: false,
                admission_gated_by: false,
                elastic_jobs: false,
                default_priority_class: false,
                ..on
            },
            other => panic!("{}: unknown settings {other}", self.id),
        }
    }

    pub(crate) fn config(&self) -> String {
        text_at(&self.value, "/config")
    }

    pub(crate) fn response(&self) -> &Value {
        &self.value["expect"]["response"]
    }

    fn setup(&self) -> Vec<&Value> {
        self.value["setup"].as_array().map(|steps| steps.iter().collect()).unwrap_or_default()
    }

    /// Bodies of the setup's objects of a kind.
    pub(crate) fn made(&self, kind: &str) -> Vec<&Value> {
        let steps = self.setup().into_iter().map(|step| &step["body"]);
        steps.filter(|body| body["kind"] == kind).collect()
    }

    pub(crate) fn has_default_queue(&self) -> bool {
        self.made("LocalQueue").iter().any(|queue| {
            queue["metadata"]["name"] == "default"
                && queue["metadata"]["namespace"] == json!(self.namespace())
        })
    }

    /// Whether a queue leads to a ClusterQueue with a MultiKueue check.
    fn dispatches(&self, queue: &str) -> bool {
        let named = |kind: &str, name: &Value| {
            self.made(kind).into_iter().find(|object| object["metadata"]["name"] == *name)
        };
        let queue = named("LocalQueue", &json!(queue)).map(|queue| &queue["spec"]["clusterQueue"]);
        let Some(cluster_queue) = queue.and_then(|name| named("ClusterQueue", name)) else {
            return false;
        };
        let checks = &cluster_queue["spec"]["admissionChecksStrategy"]["admissionChecks"];
        checks.as_array().into_iter().flatten().any(|check| {
            named("AdmissionCheck", &check["name"])
                .is_some_and(|check| check["spec"]["controllerName"] == "kueue.x-k8s.io/multikueue")
        })
    }

    /// Facts that follow from setup and settings.
    fn defaulting_facts(&self) -> DefaultingFacts {
        let owners = self.body()["metadata"]["ownerReferences"].as_array();
        let owner = owners.and_then(|owners| owners.first());
        let manage_without_queue_name = self.config() == "variant-1";
        DefaultingFacts {
            default_local_queue: self.has_default_queue(),
            default_priority_class: self
                .made("WorkloadPriorityClass")
                .iter()
                .any(|class| class["metadata"]["name"] == "default"),
            owner_managed: owner.is_some_and(|owner| owner["kind"] == "Job"),
            ancestor_managed: owner.is_some_and(|owner| {
                self.made("Job").iter().any(|job| {
                    let queue = &job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"];
                    job["metadata"]["name"] == owner["name"]
                        && (manage_without_queue_name || queue.is_string())
                })
            }),
            namespace_managed: self.config() != "variant-2"
                || self.value["namespace_labels"]["kueue"] == "yes",
            manage_without_queue_name,
            ..DefaultingFacts::default()
        }
    }

    /// The new object with its defaults.
    pub(crate) fn defaulted(&self) -> Value {
        let mut object = self.body().clone();
        if !self.reaches_webhooks() {
            return object;
        }
        let job: Job = serde_json::from_value(object.clone()).expect("a Job decodes");
        let facts = self.defaulting_facts();
        let queue = defaulting::queue_to_route_by(&job, facts);
        let queue_dispatches = queue.is_some_and(|queue| self.dispatches(queue));
        let facts = DefaultingFacts { queue_uses_multi_kueue: queue_dispatches, ..facts };
        let steps = defaulting::default(&job, facts, self.gates());
        let patch = Value::Array(steps.iter().map(defaulting::PatchAdd::to_json).collect());
        let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
        json_patch::patch(&mut object, &patch).expect("the patch applies");
        object
    }

    /// The body of the request, for a new object.
    pub(crate) fn body(&self) -> &Value {
        &self.value["request"]["body"]
    }

    /// The object before the request; `None` for a create.
    pub(crate) fn old_object(&self) -> Option<Value> {
        let path = text_at(&self.value, "/request/path");
        match self.value["request"]["method"].as_str() {
            Some("POST") => None,
            Some("PATCH") => Some(self.stored(&path)),
            other => panic!("{}: method {other:?}", self.id),
        }
    }

    /// The object after the request.
    pub(crate) fn new_object(&self) -> Value {
        match self.old_object() {
            None => self.defaulted(),
            Some(mut object) => {
                merge(&mut object, self.body());
                object
            }
        }
    }

    /// The object at a path after the setup. A Job with a queue name is created suspended.
    fn stored(&self, path: &str) -> Value {
        let (collection, name) = path.rsplit_once('/').expect("a path of an object");
        let mut object = Value::Null;
        for step in self.setup() {
            let at = step["path"].as_str().expect("a path");
            if at == collection && step["body"]["metadata"]["name"] == name {
                object = step["body"].clone();
                if object["metadata"]["labels"].get("kueue.x-k8s.io/queue-name").is_some() {
                    object["spec"]["suspend"] = json!(true);
                }
            } else if at == path {
                merge(&mut object, &step["body"]);
            }
        }
        assert!(object.is_object(), "{}: the setup makes the object", self.id);
        object
    }
}

/// A JSON merge patch.
fn merge(object: &mut Value, patch: &Value) {
    json_patch::merge(object, patch);
}
