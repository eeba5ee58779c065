//! What every kind of job can tell about itself (docs/reference/kueue.md §7.2).

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

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    /// Whether it did what it should.
    pub success: bool,
    /// For people.
    pub message: String,
}

/// The next write of a stop: the object as it shall be.
#[derive(Clone, Debug, PartialEq)]
pub enum StopWrite<J> {
    /// Metadata and spec are to be written.
    Object(Box<J>),
    /// The status is to be written.
    Status(Box<J>),
}

/// A kind of job. Nothing here reads or writes anything but the object itself.
pub trait GenericJob: Resource + Metadata<Ty = ObjectMeta> + Sized {
    /// Whether a job of this kind may name a Workload that exists already.
    const SUPPORTS_PREBUILT: bool;
    /// Whether a job of this kind may change its size through slices.
    const SUPPORTS_ELASTIC: bool;

    /// JSON pointer of the switch that holds the job back.
    const SUSPEND_PATH: &'static str;
    /// JSON pointer of the field that says who runs the job, where the kind has one.
    const MANAGED_BY_PATH: Option<&'static str>;

    /// Whether the switch that holds the job back is on.
    fn spec_suspended(&self) -> bool;

    /// Who runs the job, where the job says so.
    fn managed_by(&self) -> Option<&str>;

    /// Whether the job is held back, and done with stopping.
    fn is_suspended(&self) -> bool;

    /// Its pod sets, in a stable order.
    fn pod_sets(&self, gates: JobGates) -> Vec<PodSet>;

    /// Its pod templates with the fields they stand in, in the order of the pod sets.
    fn templates(&self) -> Vec<AnnotatedTemplate<'_>>;

    /// Lets the job run with what its pod sets got. On an error the job is as it was, and it cannot be started at all.
    fn run_with_pod_sets_info(
        &mut self,
        infos: &[PodSetInfo],
        gates: JobGates,
    ) -> Result<(), StartError>;

    /// Puts the pod templates back to what the Workload says; whether anything changed.
    fn restore_pod_sets_info(&mut self, infos: &[PodSetInfo], gates: JobGates) -> bool;

    /// The next write of a stop, none when the job has stopped. `infos` is what its pod sets had before they started, and
    /// empty where that is not known.
    fn next_stop_write(&self, infos: &[PodSetInfo], gates: JobGates) -> Option<StopWrite<Self>>;

    /// The job as it is made on a worker: held back, without what belongs to this cluster. Counts are those of the pod
    /// sets given.
    #[must_use]
    fn remote_job(&self, pod_sets: &[PodSet], gates: JobGates) -> Self;

    /// The job with the status of its copy on a worker.
    #[must_use]
    fn with_remote_status(&self, copy: &Self) -> Self;

    /// The job with a status that says that nothing of it runs, after its copy went; none if it says so already.
    fn with_idle_status(&self) -> Option<Self>;

    /// Whether anything of it was ever seen to run since it was last held back.
    fn has_started(&self) -> bool;

    /// How the job ended; none while it has not.
    fn finished(&self) -> Option<JobOutcome>;

    /// Whether pods are still running: quota is held until they are gone.
    fn is_active(&self) -> bool;

    /// Whether all pods that are needed are ready or over.
    fn pods_ready(&self) -> bool;

    /// Pods that will never run again.
    fn reclaimable_pods(&self) -> Vec<ReclaimablePod> {
        vec![]
    }

    /// What is filled in on a new job beyond what is common to all kinds.
    fn defaults(&self, gates: JobGates) -> Vec<PatchAdd>;

    /// What is wrong with a new job beyond what is common to all kinds.
    fn validate_create(&self, gates: JobGates) -> Errors;

    /// What is wrong with a change beyond what is common to all kinds.
    fn validate_update(&self, old: &Self, gates: JobGates) -> Errors;

    /// A label of the job.
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata().labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation of the job.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata().annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The LocalQueue; empty when none is named.
    fn queue_name(&self) -> &str {
        self.label(QUEUE_NAME).unwrap_or_default()
    }

    /// Whether the job may change its size while it runs.
    fn is_elastic(&self, gates: JobGates) -> bool {
        gates.elastic_jobs && Self::SUPPORTS_ELASTIC && self.annotation(ELASTIC_JOB) == Some("true")
    }
}
