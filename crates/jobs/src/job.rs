//! batch/v1 Job (docs/reference/kueue.md §7.8).
//!
//! What decisions read is typed, the rest of the object is carried along untouched.

mod check;
mod copy;
mod progress;
mod shape;
mod stop;
mod switch;
#[cfg(test)]
mod tests;

use crds::{
    meta::Condition,
    names::{
        JOB_CONTROLLER,
        annotations::{JOB_COMPLETIONS_EQUAL_PARALLELISM, JOB_MIN_PARALLELISM, STOPPING},
    },
    pod::PodTemplate,
    v1beta2::{PodSet, ReclaimablePod},
    validation::Errors,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Gates, JobKind,
    defaulting::Set,
    elastic_gate, go_parse,
    kind::{Outcome, StopStep},
    pod_set_info::{PodSetInfo, StartError},
    validate::Template,
};

/// A Job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Job {
    /// Name, labels, annotations and the like.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(default)]
    pub spec: JobSpec,
    /// What is observed.
    #[serde(default)]
    pub status: JobStatus,
}

/// What is wanted of a Job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    /// Pods that run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<i32>,
    /// Pods that must succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<i32>,
    /// `Indexed` or `NonIndexed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_mode: Option<String>,
    /// Who runs the Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
    /// Whether the Job is held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The pods.
    #[serde(default)]
    pub template: PodTemplate,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What is observed of a Job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// Pods that run or start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<i32>,
    /// Pods that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// Pods that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<i32>,
    /// Pods that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<i32>,
    /// Indexes that succeeded, as `1,3-5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_indexes: Option<String>,
    /// Indexes that failed for good, as `1,3-5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_indexes: Option<String>,
    /// Pods that are over but not counted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted_terminated_pods: Option<UncountedTerminatedPods>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Pods that are over but not counted yet, by UID.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UncountedTerminatedPods {
    /// Those that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<Vec<String>>,
    /// Those that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Vec<String>>,
}

impl k8s_openapi::Resource for Job {
    const API_VERSION: &'static str = "batch/v1";
    const GROUP: &'static str = "batch";
    const KIND: &'static str = "Job";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "jobs";
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for Job {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Job {
    /// Pods that run at a time.
    #[must_use]
    pub fn parallelism(&self) -> i32 {
        self.spec.parallelism.unwrap_or(1)
    }

    /// Pods that are needed at a time: no more than must succeed.
    #[must_use]
    pub fn count(&self) -> i32 {
        self.spec
            .completions
            .map_or(self.parallelism(), |completions| completions.min(self.parallelism()))
    }

    /// Whether each pod has an index.
    #[must_use]
    pub fn indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    /// Whether it runs elsewhere, so that its status is a copy.
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.spec.managed_by.as_deref().is_some_and(|manager| manager != JOB_CONTROLLER)
    }

    /// Fewest pods that make sense, where partial admission is asked for.
    #[must_use]
    pub fn min_parallelism(&self) -> Option<i32> {
        let number = go_parse::integer(self.annotation(JOB_MIN_PARALLELISM)?).ok()?;
        i32::try_from(number).ok()
    }

    /// Whether completions follow parallelism.
    #[must_use]
    pub fn completions_follow(&self) -> bool {
        self.annotation(JOB_COMPLETIONS_EQUAL_PARALLELISM)
            .is_some_and(|text| go_parse::switch(text) == Ok(true))
    }
}

impl JobKind for Job {
    const PREBUILT: bool = true;
    const ELASTIC: bool = true;
    const SUSPEND: &'static str = "/spec/suspend";
    const MANAGED_BY: Option<&'static str> = Some("/spec/managedBy");

    fn suspend_switch(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    fn managed_by(&self) -> Option<&str> {
        self.spec.managed_by.as_deref()
    }

    /// A Job that is being stopped counts as running until it is put back as it was.
    fn suspended(&self) -> bool {
        self.spec.suspend == Some(true) && self.annotation(STOPPING) != Some("true")
    }

    fn pod_sets(&self, gates: Gates) -> Vec<PodSet> {
        vec![shape::pod_set(self, gates)]
    }

    fn templates(&self) -> Vec<Template<'_>> {
        let annotations =
            self.spec.template.metadata.as_ref().map(|metadata| &metadata.annotations);
        vec![Template {
            path: "spec.template.metadata".to_owned(),
            annotations,
            count: self.count(),
        }]
    }

    fn run_with(&mut self, infos: &[PodSetInfo], gates: Gates) -> Result<(), StartError> {
        switch::run_with(self, infos, gates)
    }

    fn restore(&mut self, infos: &[PodSetInfo], gates: Gates) -> bool {
        switch::restore(self, infos, gates)
    }

    fn stop_step(&self, infos: &[PodSetInfo], gates: Gates) -> Option<StopStep<Self>> {
        stop::step(self, infos, gates)
    }

    fn for_worker(&self, pod_sets: &[PodSet], gates: Gates) -> Self {
        copy::for_worker(self, pod_sets, gates)
    }

    fn with_status_of(&self, copy: &Self) -> Self {
        Self { status: copy.status.clone(), ..self.clone() }
    }

    fn idle(&self) -> Option<Self> {
        copy::idle(self)
    }

    fn started(&self) -> bool {
        copy::started(self)
    }

    fn outcome(&self) -> Option<Outcome> {
        progress::outcome(self)
    }

    fn active(&self) -> bool {
        self.status.active.unwrap_or(0) != 0
    }

    fn pods_ready(&self) -> bool {
        progress::pods_ready(self)
    }

    fn reclaimable(&self) -> Vec<ReclaimablePod> {
        progress::reclaimable(self)
    }

    fn fill_in(&self, gates: Gates) -> Vec<Set> {
        let elastic = self.elastic(gates);
        elastic
            .then(|| elastic_gate::add("/spec/template", &self.spec.template))
            .flatten()
            .into_iter()
            .collect()
    }

    fn check_new(&self, gates: Gates) -> Errors {
        check::new(self, gates)
    }

    fn check_change(&self, old: &Self, gates: Gates) -> Errors {
        check::change(self, old, gates)
    }
}
