//! batch/v1 Job (docs/reference/kueue.md §7.8).
//!
//! Fields that decisions read are typed; the rest of the object is kept unchanged.

mod pod_set;
mod pod_sets_info;
mod remote;
mod selector;
mod status;
mod stop;
#[cfg(test)]
mod tests;
mod validate;

use std::sync::LazyLock;

use crds::{
    exact,
    meta::Condition,
    names::{
        JOB_CONTROLLER, MULTI_KUEUE_CONTROLLER,
        annotations::{JOB_COMPLETIONS_EQUAL_PARALLELISM, JOB_MIN_PARALLELISM, STOPPING},
    },
    pod::{PodTemplate, SharedFields},
    v1beta2::{PodSet, ReclaimablePod},
    validation::Errors,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

pub use selector::JobSelector;

use crate::{
    GenericJob, JobGates, Kind,
    defaulting::PatchAdd,
    elastic::elastic_copies::{CopiedSize, JobParallelism},
    elastic::elastic_job_gate,
    generic_job::{JobOutcome, Stop, StopWrite},
    go_parse,
    integrations::BATCH_JOB,
    job_checks::JobChecks,
    kind::{KindDefinition, ManagedBy},
    pointer::Pointer,
    start::pod_set_info::{PodSetInfo, StartError},
    validate::AnnotatedTemplate,
};

/// A Job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Job {
    /// Object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(default)]
    pub spec: JobSpec,
    /// Observed state.
    #[serde(default)]
    pub status: JobStatus,
}

crds::decode!(Job);

/// Desired state of a Job; unknown fields are in `rest`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    /// Pods that run at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<i32>,
    /// Pods that must succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<i32>,
    /// `Indexed` or `NonIndexed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_mode: Option<String>,
    /// The controller that runs the Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
    /// Whether the Job is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Template of the pods.
    #[serde(default)]
    pub template: PodTemplate,
    /// Which pods the Job controller counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<JobSelector>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: SharedFields,
}

/// Observed state of a Job; unknown fields are in `rest`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// Pods that are running or starting.
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
    pub completed_indexes: Option<Box<str>>,
    /// Indexes that failed permanently, as `1,3-5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_indexes: Option<Box<str>>,
    /// Finished pods that the Job controller has not counted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted_terminated_pods: Option<UncountedTerminatedPods>,
    /// Conditions.
    #[serde(
        default,
        deserialize_with = "exact::optional_list",
        skip_serializing_if = "Option::is_none"
    )]
    pub conditions: Option<Vec<Condition>>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: SharedFields,
}

/// Finished pods that the Job controller has not counted yet, by UID.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UncountedTerminatedPods {
    /// Those that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<Vec<String>>,
    /// Those that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Vec<String>>,
}

static KIND: LazyLock<Kind> = LazyLock::new(|| {
    Kind::of_code(KindDefinition {
        framework: BATCH_JOB.to_owned(),
        group: "batch".to_owned(),
        version: "v1".to_owned(),
        kind: "Job".to_owned(),
        plural: "jobs".to_owned(),
        prebuilt: true,
        elastic: true,
        suspend: Some(Pointer::of(&["spec", "suspend"])),
        selector: None,
        managed_by: Some(ManagedBy {
            at: Pointer::of(&["spec", "managedBy"]),
            controller: JOB_CONTROLLER.to_owned(),
        }),
        members: None,
        lookups: Vec::new(),
        pods: None,
        fields: None,
    })
});

/// The kind.
#[must_use]
pub fn kind() -> &'static Kind {
    &KIND
}

impl Job {
    /// Pods that run at the same time; 1 by default.
    #[must_use]
    pub fn parallelism(&self) -> i32 {
        self.spec.parallelism.unwrap_or(1)
    }

    /// Count of the pod set: the smaller of parallelism and completions.
    #[must_use]
    pub fn count(&self) -> i32 {
        // The Job controller makes no pods beyond the completions.
        self.spec
            .completions
            .map_or(self.parallelism(), |completions| completions.min(self.parallelism()))
    }

    /// Whether the status is that of a copy, as far as the API server takes it.
    pub(crate) fn has_status_of(&self, copy: &Self) -> bool {
        remote::status_from(self, copy) == self.status
    }

    /// Whether the completion mode is Indexed.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    /// Minimum parallelism for partial admission.
    #[must_use]
    pub fn min_parallelism(&self) -> Option<i32> {
        // An annotation that the webhook would refuse counts as absent: the Job may be older than the webhook.
        let number = go_parse::integer(self.annotation(JOB_MIN_PARALLELISM)?).ok()?;
        i32::try_from(number).ok()
    }

    /// Whether completions are kept equal to parallelism.
    #[must_use]
    pub fn syncs_completions(&self) -> bool {
        self.annotation(JOB_COMPLETIONS_EQUAL_PARALLELISM)
            .is_some_and(|text| go_parse::boolean(text) == Ok(true))
    }
}

impl GenericJob for Job {
    fn kind(&self) -> &Kind {
        kind()
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    /// The API server refuses a Job without a spec.
    fn has_field(&self, _: &Pointer) -> bool {
        true
    }

    fn spec_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    fn to_suspended(&self) -> Self {
        let mut job = self.clone();
        job.spec.suspend = Some(true);
        job
    }

    fn managed_by(&self) -> Option<&str> {
        self.spec.managed_by.as_deref()
    }

    fn keeps_counts_of_copies(&self) -> bool {
        self.managed_by() == Some(MULTI_KUEUE_CONTROLLER) && !remote::may_count_less(self)
    }

    fn with_counts_of(&self, copy: &Self) -> Option<Self> {
        let counted = || Self { status: copy.status.clone(), ..self.clone() };
        self.keeps_counts_of_copies().then(counted)
    }

    /// A stop that is not complete counts as not suspended.
    fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true) && self.annotation(STOPPING) != Some("true")
    }

    fn copied_size(&self) -> Option<CopiedSize> {
        Some(CopiedSize::Parallelism(JobParallelism {
            parallelism: self.parallelism(),
            completions: self.spec.completions,
            resizable_completions: self.is_indexed(),
        }))
    }

    fn pod_sets(&self, gates: JobGates) -> Vec<PodSet> {
        vec![pod_set::pod_set(self, gates)]
    }

    fn templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        let annotations =
            self.spec.template.metadata.as_ref().map(|metadata| &*metadata.annotations);
        vec![AnnotatedTemplate {
            path: "spec.template.metadata".to_owned(),
            annotations,
            count: self.count(),
        }]
    }

    fn run_with_pod_sets_info(
        &mut self,
        infos: &[PodSetInfo],
        gates: JobGates,
    ) -> Result<(), StartError> {
        pod_sets_info::run_with(self, infos, gates)
    }

    fn restore_pod_sets_info(&mut self, infos: &[PodSetInfo], gates: JobGates) -> bool {
        pod_sets_info::restore(self, infos, gates)
    }

    fn next_stop_write(&self, stop: &Stop<'_>, gates: JobGates) -> Option<StopWrite<Self>> {
        stop::step(self, stop, gates)
    }

    fn remote_job(&self, pod_sets: &[PodSet], gates: JobGates) -> Self {
        remote::for_worker(self, pod_sets, gates)
    }

    fn with_remote_status(&self, copy: &Self) -> Self {
        Self { status: remote::status_from(self, copy), ..self.clone() }
    }

    fn with_idle_status(&self) -> Option<Self> {
        remote::idle(self)
    }

    fn has_started(&self) -> bool {
        remote::started(self)
    }

    fn finished(&self) -> Option<JobOutcome> {
        status::outcome(self)
    }

    fn is_active(&self) -> bool {
        self.status.active.unwrap_or(0) != 0
    }

    fn pods_ready(&self) -> bool {
        status::pods_ready(self, self.count())
    }

    fn granted_pods_ready(&self, granted: i32) -> bool {
        status::pods_ready(self, self.count().min(granted))
    }

    fn reclaimable_pods(&self) -> Vec<ReclaimablePod> {
        status::reclaimable(self)
    }

    fn defaults(&self, gates: JobGates) -> Vec<PatchAdd> {
        let elastic = self.is_elastic(gates);
        elastic
            .then(|| elastic_job_gate::add("/spec/template", &self.spec.template))
            .flatten()
            .into_iter()
            .collect()
    }

    /// A Job has one pod set.
    fn checks(&self) -> JobChecks {
        JobChecks { pod_set_groups: false, ..JobChecks::default() }
    }

    fn validate_create(&self, gates: JobGates) -> Errors {
        validate::create(self, gates)
    }

    fn validate_update(&self, old: &Self, gates: JobGates) -> Errors {
        validate::update(self, old, gates)
    }
}
