//! The interface of a job kind, after Kueue's `GenericJob` (docs/reference/kueue.md §7.2).

use crds::{
    names::annotations::ELASTIC_JOB,
    names::labels::QUEUE_NAME,
    v1beta2::{PodSet, ReclaimablePod},
    validation::Errors,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use serde_json::Value;

use crate::{
    JobGates, Kind,
    defaulting::PatchAdd,
    elastic::elastic_copies::CopiedSize,
    job_checks::JobChecks,
    lookups::{FoundObjects, NeededObject},
    pods::Pod,
    pointer::Pointer,
    start::pod_set_info::{PodSetInfo, StartError},
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
    /// Deletes the object: a pod cannot be suspended.
    Delete(Box<J>),
}

/// A stop: its cause, and what the job was before its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop<'a> {
    /// The pod sets before the start; empty if they are unknown.
    pub infos: &'a [PodSetInfo],
    /// Reason of the condition `TerminationTarget` of a pod.
    pub reason: &'a str,
    /// Its message.
    pub message: &'a str,
    /// Its time.
    pub at: Option<Timestamp>,
    /// No later admission starts the job again: its Workload is being deleted.
    pub for_good: bool,
    /// The job has another size than it was started with, which stays.
    pub resized: bool,
}

/// What a set consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetSize {
    /// Replicas with a Workload each.
    Replicas {
        /// Replicas that are asked for.
        replicas: u32,
        /// Replicas that an update may have in addition. Such a replica counts while it has a pod.
        surge: u32,
        /// Replicas that an update with a surge has at present, which count also without pods; 0 without such an update.
        updating: u32,
    },
    /// One group of pods with one Workload.
    Group {
        /// Pods that are asked for.
        pods: u32,
    },
}

impl<J> StopWrite<J> {
    /// The same write of another form of the job.
    pub fn map<K>(self, form: impl FnOnce(J) -> K) -> StopWrite<K> {
        match self {
            Self::Object(job) => StopWrite::Object(Box::new(form(*job))),
            Self::Status(job) => StopWrite::Status(Box::new(form(*job))),
            Self::Delete(job) => StopWrite::Delete(Box::new(form(*job))),
        }
    }
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
pub trait GenericJob: Clone {
    /// The kind.
    fn kind(&self) -> &Kind;

    /// The metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// The metadata.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;

    /// Whether the job is suspended and still has what an earlier start added, which the next start replaces.
    fn keeps_additions(&self) -> bool {
        false
    }

    /// Whether such a job has no active pods: its operator accepts other additions.
    fn may_restart(&self) -> bool {
        self.keeps_additions() && !self.is_active()
    }

    /// What the next write of a start leaves: the started job, or what has to be stored before the job may start. `None` if the operator
    /// accepts neither before the pods have ended.
    fn next_start_write(&self, started: Self) -> Option<Self> {
        Some(started)
    }

    /// Whether the counts of the status are the highest of all copies on workers, because the API server takes none back. After a move
    /// they say nothing of the present copy.
    fn keeps_counts_of_copies(&self) -> bool {
        false
    }

    /// The job with the counts of its present copy, and with no others; `None` if its counts are those of the present copy already.
    fn with_counts_of(&self, _: &Self) -> Option<Self> {
        None
    }

    /// Whether the object has a field, so that a patch may add fields below it.
    fn has_field(&self, at: &Pointer) -> bool;

    /// Value of the suspend field.
    fn spec_suspended(&self) -> bool;

    /// The job with its suspend field set, and nothing else changed. A job of a kind without that field is unchanged.
    #[must_use]
    fn to_suspended(&self) -> Self;

    /// Value of the managedBy field.
    fn managed_by(&self) -> Option<&str>;

    /// Whether the job is suspended and a stop is complete (Kueue: `IsSuspended`).
    fn is_suspended(&self) -> bool;

    /// Other objects that the pod sets need.
    fn needed_objects(&self) -> Vec<NeededObject> {
        vec![]
    }

    /// The job with the pod sets that follow from what was found.
    #[must_use]
    fn with_objects(&self, _: &FoundObjects) -> Self {
        self.clone()
    }

    /// Why the pod sets are not known: an object is missing, or the job contradicts itself. `None` if they are.
    fn unresolved(&self) -> Option<&str> {
        None
    }

    /// Whether the pod sets are not known although no object is missing. Only a change of the job itself mends that.
    fn contradicts_itself(&self) -> bool {
        false
    }

    /// The generation of the live object that an elastic job has its size from, as its annotation shows it: empty while there is none.
    /// `None` for a job that has a size of its own.
    fn live_generation(&self, _: JobGates) -> Option<String> {
        None
    }

    /// What the job consists of, if it is a set of pods that are started without it; `None` if the job itself is started.
    fn set_size(&self) -> Option<SetSize> {
        None
    }

    /// The size that copies on workers follow when the job is elastic; `None` if they keep the size that they were made with.
    fn copied_size(&self) -> Option<CopiedSize> {
        None
    }

    /// The replica of a pod of this set, if it is known.
    fn replica_of(&self, _: &Pod) -> Option<u32> {
        None
    }

    /// A pod of this set as a member of its group; `None` if nothing changes.
    fn adopted(&self, _: &Pod, _: JobGates) -> Option<Pod> {
        None
    }

    /// Pod sets in a stable order (Kueue: `PodSets`). An unresolved job has none.
    fn pod_sets(&self, gates: JobGates) -> Vec<PodSet>;

    /// The pod sets that other versions of Kueue, or former ones of this program, have for the job; `None` if those are the same. A version
    /// may have either form of each pod set.
    fn pod_sets_as_written(&self, _: JobGates) -> Option<Vec<PodSet>> {
        None
    }

    /// Pod templates with their field paths, in the order of the pod sets.
    fn templates(&self) -> Vec<AnnotatedTemplate<'_>>;

    /// Annotations from which its pod sets have their topology requests, whether or not the webhook of the kind checks them.
    fn requesting_templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        self.templates()
    }

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

    /// The next write of a stop; `None` if the job has stopped.
    fn next_stop_write(&self, stop: &Stop<'_>, gates: JobGates) -> Option<StopWrite<Self>>;

    /// The job without the finalizer that keeps it for its Workload; `None` if it has none.
    fn finalized(&self) -> Option<Self> {
        None
    }

    /// The copy of the job for a worker: suspended, without fields of this cluster, with the counts of `pod_sets`.
    #[must_use]
    fn remote_job(&self, pod_sets: &[PodSet], gates: JobGates) -> Self;

    /// The fields of its copy's spec that follow this job while both run, as far as they differ.
    fn forwarded_spec(&self, _copy: &Self) -> Option<Value> {
        None
    }

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

    /// The same of an elastic job with a slice of so many pods, which may be fewer. Kinds without an own count ask for all.
    fn granted_pods_ready(&self, _granted: i32) -> bool {
        self.pods_ready()
    }

    /// Pods that will not run again (Kueue: `ReclaimablePods`).
    fn reclaimable_pods(&self) -> Vec<ReclaimablePod> {
        vec![]
    }

    /// Fields that the defaulting webhook sets for this kind only.
    fn defaults(&self, gates: JobGates) -> Vec<PatchAdd>;

    /// The PriorityClass that the job names outside of its pod templates.
    fn priority_class(&self) -> Option<&str> {
        None
    }

    /// Whether a job that names a prebuilt Workload is refused. Otherwise the name has no effect if the kind does not support it.
    fn refuses_prebuilt(&self) -> bool {
        false
    }

    /// Whether an update of `old` to this job is validated at all.
    fn checks_update_of(&self, _old: &Self, _: JobGates) -> bool
    where
        Self: Sized,
    {
        true
    }

    /// The checks that the webhook makes only of some kinds. All other checks are made of every job.
    fn checks(&self) -> JobChecks {
        JobChecks::default()
    }

    /// Whether the object is a job. Otherwise its pods or its replicas are: it has no time limit and no elasticity to validate,
    /// and stays in a queue.
    fn is_job(&self) -> bool {
        true
    }

    /// What a refusal for a topology annotation adds.
    fn topology_advice(&self) -> &'static str {
        ""
    }

    /// Whether a dispatched job does not start in the manager's cluster: it has no field that names another controller, so a
    /// start would run it there as well.
    fn stays_gated_when_dispatched(&self) -> bool {
        false
    }

    /// Gates the pods of every template, in the copy of a set for a worker that has no webhooks.
    fn hold_pods(&mut self) {}

    /// Whether another framework holds the pods of the object. Webhooks leave such an object as it is and refuse nothing.
    fn is_held_by_other(&self) -> bool {
        false
    }

    /// Whether the job is left alone, whatever queue it names (Kueue: `Skip`).
    fn is_skipped(&self) -> bool {
        false
    }

    /// Why such a job waits for ever in the queue that it names. Webhooks refuse most of them.
    fn never_admissible_reason(&self) -> Option<String> {
        None
    }

    /// Whether a job that is being deleted keeps its quota, because something that belongs to it still needs it.
    fn defers_finalization(&self, _gates: JobGates) -> bool {
        false
    }

    /// When an evicted job that is being deleted has no pods that run; `None` if that shows only once it is gone.
    fn released_at(&self, _now: Timestamp, _gates: JobGates) -> Option<Timestamp> {
        None
    }

    /// The errors of a new job of a form for which nothing else is checked; `None` for other forms.
    fn creation_errors_alone(&self, _gates: JobGates) -> Option<Errors> {
        None
    }

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
        crds::meta::annotation(self.metadata(), key)
    }

    /// Name of the LocalQueue; empty without the label.
    fn queue_name(&self) -> &str {
        self.label(QUEUE_NAME).unwrap_or_default()
    }

    /// Whether the job has the annotation of elastic jobs.
    fn asks_for_elasticity(&self, gates: JobGates) -> bool {
        gates.elastic_jobs && self.annotation(ELASTIC_JOB) == Some("true")
    }

    /// Whether a controller other than the kind's own runs the job, so that its status is copied.
    fn is_managed_elsewhere(&self) -> bool {
        let own = self.kind().managed_by().map(|managed_by| managed_by.controller.as_str());
        self.managed_by().is_some_and(|manager| Some(manager) != own)
    }

    /// Whether the job is elastic: it may change its size through workload slices.
    fn is_elastic(&self, gates: JobGates) -> bool {
        self.asks_for_elasticity(gates) && self.kind().supports_elastic()
    }
}
