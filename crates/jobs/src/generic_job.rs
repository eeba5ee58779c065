//! The interface of a job kind, after Kueue's `GenericJob` (docs/reference/kueue.md §7.2).

use crds::{
    names::annotations::ELASTIC_JOB,
    names::labels::QUEUE_NAME,
    v1beta2::{PodSet, ReclaimablePod},
    validation::Errors,
};
use k8s_openapi::{Metadata, Resource, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use crate::{
    JobGates,
    defaulting::PatchAdd,
    pod_set_info::{PodSetInfo, StartError},
    validate::AnnotatedTemplate,
};

/// How a job finished (Kueue: the results of `Finished`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    /// Whether the job succeeded.
    pub success: bool,
    /// Message of the condition.
    pub message: String,
}

/// The next write of a stop, with the object after the write.
#[derive(Clone, Debug, PartialEq)]
pub enum StopWrite<J> {
    /// Writes metadata and spec.
    Object(Box<J>),
    /// Writes the status subresource.
    Status(Box<J>),
}

/// A job kind, after Kueue's `GenericJob`: everything that reconciliation, webhooks and dispatch need of a job
/// object.
///
/// # Contract
/// Implementors read and change only the object itself: no IO, no clock, no global state. `pod_sets` and `templates`
/// have one entry per pod set, in the same stable order. `run_with_pod_sets_info` leaves the job unchanged on an
/// error. `restore_pod_sets_info` undoes it: a started and restored job has the pod templates of its Workload again.
/// A job that does not run reports `is_active` as false, or its quota is never released.
///
/// Callers write the changed objects and call again after each watch event; a call with an unchanged object returns
/// the same result.
///
/// # Example
/// ```
/// use jobs::{GenericJob, Job, JobGates};
///
/// let job: Job = serde_json::from_value(serde_json::json!({
///     "metadata": { "name": "train", "labels": { "kueue.x-k8s.io/queue-name": "team" } },
///     "spec": { "suspend": true, "parallelism": 4, "template": {} },
/// }))?;
/// assert!(job.is_suspended());
/// assert_eq!(job.queue_name(), "team");
/// assert_eq!(job.pod_sets(JobGates::default())[0].count, Some(4));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait GenericJob: Resource + Metadata<Ty = ObjectMeta> + Sized {
    /// Whether the kind supports prebuilt Workloads.
    const SUPPORTS_PREBUILT: bool;
    /// Whether the kind supports elastic jobs via workload slices.
    const SUPPORTS_ELASTIC: bool;

    /// JSON pointer of the suspend field.
    const SUSPEND_PATH: &'static str;
    /// JSON pointer of the managedBy field, if the kind has one.
    const MANAGED_BY_PATH: Option<&'static str>;

    /// Value of the suspend field.
    fn spec_suspended(&self) -> bool;

    /// Value of the managedBy field.
    fn managed_by(&self) -> Option<&str>;

    /// Whether the job is suspended and a stop is complete (Kueue: `IsSuspended`).
    fn is_suspended(&self) -> bool;

    /// Pod sets in a stable order (Kueue: `PodSets`).
    fn pod_sets(&self, gates: JobGates) -> Vec<PodSet>;

    /// Pod templates with their field paths, in the order of the pod sets.
    fn templates(&self) -> Vec<AnnotatedTemplate<'_>>;

    /// Unsuspends the job with node selectors, tolerations and counts of its pod sets (Kueue: `RunWithPodSetsInfo`).
    ///
    /// # Errors
    /// A [`StartError`] is permanent; the job is unchanged.
    fn run_with_pod_sets_info(
        &mut self,
        infos: &[PodSetInfo],
        gates: JobGates,
    ) -> Result<(), StartError>;

    /// Restores the pod templates to those of the Workload (Kueue: `RestorePodSetsInfo`). Returns whether anything
    /// changed.
    fn restore_pod_sets_info(&mut self, infos: &[PodSetInfo], gates: JobGates) -> bool;

    /// The next write of a stop; `None` if the job has stopped. `infos` holds the pod sets before the start, or
    /// nothing if they are unknown.
    fn next_stop_write(&self, infos: &[PodSetInfo], gates: JobGates) -> Option<StopWrite<Self>>;

    /// The copy of the job for a worker: suspended, without fields of this cluster, with the counts of `pod_sets`.
    #[must_use]
    fn remote_job(&self, pod_sets: &[PodSet], gates: JobGates) -> Self;

    /// The job with the status of its remote copy.
    #[must_use]
    fn with_remote_status(&self, copy: &Self) -> Self;

    /// The job with a status without active pods, after its remote copy is gone; `None` if the status is that
    /// already.
    fn with_idle_status(&self) -> Option<Self>;

    /// Whether any pod ran since the job was last suspended.
    fn has_started(&self) -> bool;

    /// Result of a finished job (Kueue: `Finished`); `None` while it is not finished.
    fn finished(&self) -> Option<JobOutcome>;

    /// Whether pods are active (Kueue: `IsActive`). Quota stays reserved until they are gone.
    fn is_active(&self) -> bool;

    /// Whether all required pods are ready or have succeeded (Kueue: `PodsReady`).
    fn pods_ready(&self) -> bool;

    /// Pods that will not run again (Kueue: `ReclaimablePods`).
    fn reclaimable_pods(&self) -> Vec<ReclaimablePod> {
        vec![]
    }

    /// Fields that the defaulting webhook sets for this kind only.
    fn defaults(&self, gates: JobGates) -> Vec<PatchAdd>;

    /// Validation errors of a new job for this kind only.
    fn validate_create(&self, gates: JobGates) -> Errors;

    /// Validation errors of an update for this kind only.
    fn validate_update(&self, old: &Self, gates: JobGates) -> Errors;

    /// Value of a label.
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata().labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata().annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Name of the LocalQueue; empty without the label.
    fn queue_name(&self) -> &str {
        self.label(QUEUE_NAME).unwrap_or_default()
    }

    /// Whether the job is elastic: it may change its size through workload slices.
    fn is_elastic(&self, gates: JobGates) -> bool {
        gates.elastic_jobs && Self::SUPPORTS_ELASTIC && self.annotation(ELASTIC_JOB) == Some("true")
    }
}
