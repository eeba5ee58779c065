//! What copies do not have yet while they run: sizes of elastic jobs and of sets of replicas, and fields of a spec that are forwarded
//! (docs/reference/multikueue.md §2.7, §2.13).

use ::jobs::{
    GenericJob, JobGates, JobObject,
    elastic_copies::{shrunk_pod_sets, size_of_later_slice, size_to_push},
    prebuilt::prebuilt_name,
    set_copies,
};
use crds::{
    names::reasons::RESIZE_REFUSED,
    template_defaults::same_pod_sets,
    v1beta2::{Workload, WorkloadSpec},
};
use jiff::Timestamp;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};
use serde_json::{Value, json};

use crate::control::{
    job_key::JobKey,
    multikueue::{view::slice_heirs::SliceHeirs, workers::worker::Worker},
    outbox::Tracked,
};

/// The copies of one Workload on a worker, with what their sizes follow from.
#[derive(Clone, Copy)]
pub(crate) struct CopySizes<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) key: &'a Key,
    /// What the clone should ask for; `None` without an admission.
    pub(crate) expected: Option<&'a WorkloadSpec>,
    pub(crate) heirs: SliceHeirs<'a>,
    pub(crate) gates: JobGates,
    pub(crate) now: Timestamp,
}

/// What the copy of a job lacks.
#[derive(Debug)]
pub(crate) struct JobSize {
    /// Fields of its spec.
    pub(crate) spec: Value,
    /// It names an earlier slice.
    pub(crate) renames: bool,
}

impl JobSize {
    /// The change, as a worker may refuse it: apart from stamps, which differ with every version of the Workload.
    pub(crate) fn fields(&self) -> Value {
        json!({ "spec": self.spec, "renames": self.renames })
    }
}

impl CopySizes<'_> {
    /// Fields of the spec that shrink the clone; `None` if it is no larger, or the worker refused them.
    pub(crate) fn of_clone(self) -> Option<Value> {
        let clone = self.worker.clones.get(self.key)?.object();
        let shrunk = shrunk_pod_sets(clone, &self.expected?.pod_sets)?;
        let fields = json!({ "podSets": shrunk });
        self.unless_refused(fields)
    }

    /// What resizes the copy of a job; `None` if it has its size, waits for its clone, or the worker refused that.
    pub(crate) fn of_job(self, job_key: &JobKey, hub: &JobObject) -> Option<JobSize> {
        let copy = self.worker.jobs.get(job_key).map(Tracked::object)?;
        if let Some(replicas) = set_copies::replicas_to_push(&**copy, hub) {
            let spec = json!({ "replicas": replicas });
            return self.job_size(JobSize { spec, renames: false });
        }
        if let Some(spec) = self.forwarded(copy, hub) {
            return self.job_size(JobSize { spec, renames: false });
        }
        let clone = &self.worker.clones.get(self.key)?.object().spec.pod_sets;
        let granted = self.expected.map(|expected| &expected.pod_sets);
        let granted = granted.filter(|all| same_pod_sets(clone, all))?;
        if prebuilt_name(&**copy, self.gates).name == &*self.key.name {
            let spec = size_to_push(&**copy, hub, granted, self.gates)?;
            return self.job_size(JobSize { spec, renames: false });
        }
        self.heirs.heir(job_key, copy, self.worker).filter(|heir| *heir == self.key)?;
        let spec = size_of_later_slice(&**copy, hub, granted, self.gates)?;
        self.job_size(JobSize { spec, renames: true })
    }

    /// Fields of the spec that are no size.
    fn forwarded(self, copy: &JobObject, hub: &JobObject) -> Option<Value> {
        let spec = hub.forwarded_spec(copy).filter(|_| self.gates.remote_spec_sync)?;
        self.unless_refused(json!({ "spec": spec, "renames": false })).map(|_| spec)
    }

    fn job_size(self, size: JobSize) -> Option<JobSize> {
        self.unless_refused(size.fields()).map(|_| size)
    }

    fn unless_refused(self, fields: Value) -> Option<Value> {
        (!self.worker.refused.sizes.has(self.key, &fields, self.now)).then_some(fields)
    }
}

/// The Event about a Workload after a worker refused its size.
pub(crate) fn refused_event(workload: &Workload, cluster: &str, message: &str) -> EventRecord {
    let note = format!("worker cluster \"{cluster}\" does not take a change of the job: {message}");
    let (event_type, reason) = (EventType::Warning, RESIZE_REFUSED.to_owned());
    let regarding = Regarding::of(workload);
    EventRecord { regarding, event_type, action: reason.clone(), reason, note, controller: None }
}
