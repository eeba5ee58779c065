//! A recorded case of a kind of job, as in its file.

use serde::Deserialize;
use serde_json::Value;

/// A create that was not stored, or a trace of requests with what followed from each.
#[derive(Clone, Debug, Deserialize)]
pub struct TraceCase {
    /// `Kind/create/name` or `Kind/life/name`, unique.
    pub case: String,
    /// The kind that the case is about.
    pub kind: String,
    /// The settings of the manager, if not the usual ones.
    #[serde(default)]
    pub config: Option<TraceSettings>,
    /// The namespace of a create.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Requests, in order.
    pub steps: Vec<TraceStep>,
}

/// Settings of the manager.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceSettings {
    /// The usual ones.
    #[default]
    #[serde(skip)]
    Base,
    /// Jobs without a queue name are managed.
    #[serde(rename = "manageJobsWithoutQueueName")]
    WithoutQueueName,
    /// Short timeouts of PodsReady.
    #[serde(rename = "waitForPodsReady")]
    PodsReady,
}

/// One step.
#[derive(Clone, Debug, Deserialize)]
pub struct TraceStep {
    /// Its number.
    pub step: u64,
    /// What it means.
    #[serde(default)]
    pub what: String,
    /// The cluster that it is sent to, if not the only one.
    #[serde(default)]
    pub cluster: Option<TraceCluster>,
    /// The request; none if the recorder only waited.
    #[serde(default, rename = "do")]
    pub request: Option<TraceRequest>,
    /// The request changes nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// What the API server answered.
    #[serde(default)]
    pub answer: Option<TraceAnswer>,
    /// What changed afterwards.
    #[serde(default)]
    pub then: Option<TraceOutcome>,
}

/// A cluster that a step names.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum TraceCluster {
    /// The worker.
    Worker,
}

/// A request.
#[derive(Clone, Debug, Deserialize)]
pub struct TraceRequest {
    /// The verb.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// `Content-Type`.
    #[serde(default)]
    pub content_type: Option<String>,
    /// The body.
    #[serde(default)]
    pub body: Option<Value>,
}

/// An answer.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TraceAnswer {
    /// HTTP status.
    pub code: u16,
    /// The text of a refusal.
    #[serde(default)]
    pub message: Option<String>,
    /// The object of a success.
    #[serde(default)]
    pub object: Option<Value>,
    /// The quoted texts of `Warning` headers.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// What changed after a step, in each cluster.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TraceOutcome {
    /// In the only cluster.
    #[serde(flatten)]
    pub alone: TraceChanges,
    /// In the manager cluster, if there is a worker.
    #[serde(default)]
    pub manager: Option<TraceChanges>,
    /// In the worker.
    #[serde(default)]
    pub worker: Option<TraceChanges>,
}

/// What changed after a step in one cluster.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TraceChanges {
    /// Objects as they are then.
    #[serde(default)]
    pub changed: Vec<Value>,
    /// `Kind/name` of objects that are gone.
    #[serde(default)]
    pub gone: Vec<String>,
    /// `Kind/name` of objects about which nothing is compared.
    #[serde(default)]
    pub varies: Vec<String>,
    /// Events of Kueue that are new.
    #[serde(default)]
    pub events: Vec<TraceEvent>,
    /// Those that were seen in one of two recordings only.
    #[serde(default)]
    pub events_sometimes: Vec<TraceEvent>,
}

/// A recorded Event.
#[derive(Clone, Debug, Deserialize)]
pub struct TraceEvent {
    /// `Kind/name`.
    pub about: String,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The reason.
    pub reason: String,
    /// The action.
    pub action: String,
    /// The reporting controller.
    pub controller: String,
    /// The note.
    pub message: String,
}

impl TraceChanges {
    /// Whether nothing is compared about an object, given as `Kind/name`.
    pub(crate) fn may_vary(&self, object: &str) -> bool {
        self.varies.iter().any(|varies| varies == object)
    }
}

impl TraceOutcome {
    /// The changes of the manager cluster, or of the only one.
    pub(crate) fn of_manager(&self) -> &TraceChanges {
        self.manager.as_ref().unwrap_or(&self.alone)
    }
}

impl TraceCase {
    /// Whether the case needs more than one cluster.
    #[must_use]
    pub fn is_of_several_clusters(&self) -> bool {
        self.case.starts_with("MultiKueue/") || self.steps.iter().any(|step| step.cluster.is_some())
    }

    /// Whether pods were assigned to domains of a topology. The choice depends on what other pods take of each node.
    pub(crate) fn assigns_domains(&self) -> bool {
        let assigns = |changes: &TraceChanges| {
            changes.changed.iter().any(|object| {
                let sets = object["status"]["admission"]["podSetAssignments"].as_array();
                sets.into_iter().flatten().any(|set| set.get("topologyAssignment").is_some())
            })
        };
        let outcomes = self.steps.iter().filter_map(|step| step.then.as_ref());
        outcomes.map(TraceOutcome::of_manager).any(assigns)
    }
}
