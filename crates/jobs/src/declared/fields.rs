//! What a kind declares about its jobs.

use serde::Deserialize;
use serde_json::Value;

use super::{
    defaults::DefaultField, kind_reference::KindReference, pod_sets::PodSetRule, probe::Probe,
    ray::RaySpec, spark::SparkSpec, training::TrainingSpec,
};
use crate::{group_sizes::ResizedGroups, job_checks::JobChecks, pointer::Pointer};

/// Where the fields of a kind stand that decisions read and write.
///
/// # Example
/// ```
/// use jobs::declared::JobFields;
///
/// let fields: JobFields = serde_json::from_value(serde_json::json!({
///     "podSets": [{ "name": { "fixed": "main" }, "template": "/spec/template", "replicas": { "at": "/spec/size" } }],
///     "outcomes": [{ "condition": { "type": "Done", "success": true } }],
///     "active": { "anyAbove": ["/status/active"] },
///     "ready": { "condition": "Ready" },
/// }))?;
/// assert_eq!(fields.check(&[]), Ok(()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobFields {
    /// Pod sets, in their order.
    #[serde(default)]
    pub pod_sets: Vec<PodSetRule>,
    /// A list of objects of other kinds, as an AppWrapper has it. Their pod sets are those of the job.
    #[serde(default)]
    pub components: Option<Pointer>,
    /// Fields with the name of a PriorityClass. The first one that is there comes before those of the templates.
    #[serde(default)]
    pub priority_class: Vec<Pointer>,
    /// Fields that the webhook sets in new jobs, in this order.
    #[serde(default)]
    pub defaults: Vec<DefaultField>,
    /// What the webhook checks.
    #[serde(default)]
    pub checks: JobChecks,
    /// An object of one of some kinds that jobs name.
    #[serde(default)]
    pub reference: Option<KindReference>,
    /// Results of a job. The first that applies counts; without any the job never finishes.
    #[serde(default)]
    pub outcomes: Vec<Outcome>,
    /// Whether pods are active.
    #[serde(default)]
    pub active: Probe,
    /// Whether all pods are ready or have succeeded. By default they are as long as any is active.
    #[serde(default)]
    pub ready: Option<Probe>,
    /// Pods that will not run again.
    #[serde(default)]
    pub reclaimable: Option<Reclaimable>,
    /// Which jobs are left alone: they get no Workload, and are neither started nor stopped.
    #[serde(default)]
    pub skip: Probe,
    /// Pods of an elastic job get their scheduling gate from another object, which makes them, and not from templates of the job.
    #[serde(default)]
    pub gated_elsewhere: bool,
    /// The API refuses another affinity of the pods at a start.
    #[serde(default)]
    pub immutable_affinity: bool,
    /// Which jobs have pods that the operator places itself: a start binds none of them to nodes.
    #[serde(default)]
    pub placed_by: Option<PlacedBy>,
    /// The spec of a RayCluster that the job is, or has.
    #[serde(default)]
    pub ray: Option<RaySpec>,
    /// What the operator renders a runtime with. The pod sets are those of the result.
    #[serde(default)]
    pub training: Option<TrainingSpec>,
    /// A driver and executors. They are the pod sets.
    #[serde(default)]
    pub spark: Option<SparkSpec>,
    /// What differs on a worker.
    #[serde(default)]
    pub remote: RemoteFields,
}

/// An annotation by which the operator of a kind chooses the nodes of pods itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlacedBy {
    /// The key. The job or a pod template may have it.
    pub annotation: String,
    /// Further maps of annotations that may have it.
    #[serde(default)]
    pub within: Vec<Pointer>,
}

/// Pods that webhooks mark in their template: jobs themselves, or one group (docs/reference/kueue.md §7.8).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MarkedPods {
    /// The pod template.
    pub template: Pointer,
    /// The number of pods that are ready. From the first one on the queue name stays.
    pub ready: Pointer,
    /// The pods as one group with one Workload; without it each of them is a job.
    #[serde(default)]
    pub group: Option<GroupedPods>,
}

/// The pods of an object as one group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupedPods {
    /// How many pods are asked for; 1 if the field is absent.
    pub replicas: Pointer,
    /// How many pods exist.
    pub present: Pointer,
    /// A label that all pods have which objects of the kind control.
    pub label: String,
    /// The label of a pod with its index.
    pub index: String,
}

impl MarkedPods {
    /// Whether each pointer reaches one field.
    #[must_use]
    pub(crate) fn is_valid(&self) -> bool {
        let group = self.group.iter().flat_map(|group| [&group.replicas, &group.present]);
        let mut fields = [&self.template, &self.ready].into_iter().chain(group);
        fields.all(|at| at.is_single() && !at.parents().is_empty())
    }

    /// Whether a pod is ready.
    pub(super) fn are_ready(&self, object: &Value) -> bool {
        self.ready.number(object).is_some_and(|ready| ready > 0)
    }

    /// The template of an object.
    pub(super) fn template_of<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.template.get(object).filter(|template| template.is_object())
    }
}

/// How a result shows in the status.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Outcome {
    /// A condition that is True. Its message is that of the result.
    Condition {
        /// Type of the condition.
        r#type: String,
        /// Whether the job succeeded.
        success: bool,
    },
    /// The first condition in the order of the object that is True and of one of these types. Its message is that of the result.
    #[serde(rename_all = "camelCase")]
    FirstCondition {
        /// Types of a job that succeeded.
        succeeded: Vec<String>,
        /// Types of a job that failed.
        failed: Vec<String>,
    },
    /// The text of a field.
    Values {
        /// The field.
        at: Pointer,
        /// Texts of a job that succeeded.
        #[serde(default)]
        succeeded: Vec<String>,
        /// Texts of a job that failed.
        #[serde(default)]
        failed: Vec<String>,
        /// The message of the result, if there is one.
        #[serde(default)]
        message: Option<Pointer>,
        /// The message of the result, if the object has none.
        #[serde(default)]
        text: Option<String>,
        /// A question; only jobs for which the answer is yes have this result.
        #[serde(default)]
        when: Option<Probe>,
    },
}

/// Replicas of pod sets that succeeded, by name: their pods will not run again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reclaimable {
    /// The list with an entry per pod set.
    pub each: Pointer,
    /// Name of the pod set in an entry.
    pub name: Pointer,
    /// Number of replicas that succeeded in an entry.
    pub replicas: Pointer,
    /// While one of these holds, those that succeeded may run again; none is reclaimable then.
    #[serde(default)]
    pub unless: Vec<Probe>,
}

/// What differs between a job and its copy on a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoteFields {
    /// Fields that the copy lacks. A copy that deletes itself would be gone before its end was seen.
    #[serde(default)]
    pub strip: Vec<Pointer>,
    /// Annotations that the copy lacks.
    #[serde(default)]
    pub strip_annotations: Vec<String>,
    /// Fields below `/spec` that are written to the copy of a job when they change, also while it runs (gate MultiKueueRemoteSpecSync).
    #[serde(default)]
    pub forward: Vec<Pointer>,
    /// Groups of pods that the copy of an elastic job resizes with it. Without them such a job is stopped and dispatched again.
    #[serde(default)]
    pub resized_groups: Option<ResizedGroups>,
}

impl RemoteFields {
    fn check(&self) -> Result<(), FieldsError> {
        let resized = self.resized_groups.iter();
        let resized = resized.map(|groups| ("remote.resizedGroups.each", &groups.each));
        let mut fields = resized.chain(self.forward.iter().map(|at| ("remote.forward", at)));
        match fields.find(|(_, at)| !at.is_single() || !at.is_below("spec")) {
            Some((field, at)) => Err(FieldsError::NotSpec { field, pointer: at.clone() }),
            None => Ok(()),
        }
    }
}

/// Why a declaration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// No Workload can be made of such a job.
    #[error("no pod sets are declared")]
    NoPodSets,
    /// A pointer that must reach one field has a `*`.
    #[error("{field}: {pointer} reaches more than one field")]
    Several {
        /// The declared field.
        field: &'static str,
        /// The pointer.
        pointer: Pointer,
    },
    /// Two pod sets have one name.
    #[error("two pod sets are called {0}")]
    SameName(String),
    /// Only a map can have no keys but entries.
    #[error("podSets.noOtherKeys: within and entry are missing")]
    NoMap,
    /// A template in another object needs a lookup of this name.
    #[error("podSets.from.lookup: no lookup is called {0}")]
    NoLookup(String),
    /// Copies follow their job by a change of their spec.
    #[error("{field}: {pointer} is not one field below /spec")]
    NotSpec {
        /// The declared field.
        field: &'static str,
        /// The pointer.
        pointer: Pointer,
    },
    /// Workers write the status; what is read of a running job has to stand there.
    #[error("{field}: {pointer} is not below /status")]
    NotStatus {
        /// The declared field.
        field: &'static str,
        /// The pointer.
        pointer: Pointer,
    },
}

impl JobFields {
    /// Whether jobs can be managed by this declaration. `lookups` are the names of objects that the kind looks up.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, lookups: &[&str]) -> Result<(), FieldsError> {
        let by_code = self.training.is_some() || self.spark.is_some();
        if self.pod_sets.is_empty() && self.components.is_none() && !by_code {
            return Err(FieldsError::NoPodSets);
        }
        let mut names = Vec::new();
        for rule in &self.pod_sets {
            rule.check(lookups)?;
            if let Some(name) = rule.fixed_name() {
                if names.contains(&name) {
                    return Err(FieldsError::SameName(name.to_owned()));
                }
                names.push(name);
            }
        }
        let single = self.defaults.iter().map(|one| ("defaults.at", &one.at));
        let mut single = single.chain(self.reference.iter().map(|one| ("reference.at", &one.at)));
        if let Some((field, pointer)) = single.find(|(_, at)| !at.is_single()) {
            return Err(FieldsError::Several { field, pointer: pointer.clone() });
        }
        self.remote.check()?;
        // Quota is released when no pod is active: only the status changes while a job ends.
        let outside = self.active.fields().into_iter().find(|field| !field.is_below("status"));
        match outside {
            Some(pointer) => {
                Err(FieldsError::NotStatus { field: "active", pointer: pointer.clone() })
            }
            None => Ok(()),
        }
    }
}
