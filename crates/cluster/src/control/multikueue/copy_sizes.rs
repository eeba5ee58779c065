//! Sizes that copies do not have yet: of elastic jobs that have shrunk, and of sets of replicas (docs/reference/multikueue.md §2.7,
//! §2.13).

use ::jobs::{
    JobGates, JobObject,
    elastic_copies::{shrunk_pod_sets, size_to_push},
    set_copies,
};
use crds::{
    names::reasons::RESIZE_REFUSED,
    v1beta2::{PodSet, Workload, WorkloadSpec},
};
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};
use serde_json::{Value, json};

use super::worker::Worker;
use crate::control::{job_key::JobKey, outbox::Tracked};

/// The copies of one Workload on a worker, with what their sizes follow from.
#[derive(Clone, Copy)]
pub(super) struct CopySizes<'a> {
    pub(super) worker: &'a Worker,
    pub(super) key: &'a Key,
    /// What the clone should ask for; `None` without an admission.
    pub(super) expected: Option<&'a WorkloadSpec>,
    pub(super) gates: JobGates,
}

impl CopySizes<'_> {
    /// Fields of the spec that shrink the clone; `None` if it is no larger, or the worker refused them.
    pub(super) fn of_clone(self) -> Option<Value> {
        let clone = self.worker.clones.get(self.key)?.object();
        let shrunk = shrunk_pod_sets(clone, &self.expected?.pod_sets)?;
        let fields = json!({ "podSets": shrunk });
        self.unless_refused(fields)
    }

    /// Fields of the spec that resize the copy of a job; `None` if it has its size, waits for its clone, or the worker refused them.
    pub(super) fn of_job(self, job_key: &JobKey, hub: &JobObject) -> Option<Value> {
        let copy = self.worker.jobs.get(job_key).map(Tracked::object)?;
        if let Some(replicas) = set_copies::replicas_to_push(&**copy, hub) {
            return self.unless_refused(json!({ "replicas": replicas }));
        }
        let clone = &self.worker.clones.get(self.key)?.object().spec.pod_sets;
        let granted =
            self.expected.map(|expected| &expected.pod_sets).filter(|all| *all == clone)?;
        let fields = size_to_push(&**copy, (hub, n_pods(granted)), self.gates)?;
        self.unless_refused(fields)
    }

    fn unless_refused(self, fields: Value) -> Option<Value> {
        (!self.worker.refuses_size(self.key, &fields)).then_some(fields)
    }
}

fn n_pods(sets: &[PodSet]) -> i32 {
    sets.iter().map(|set| set.count.unwrap_or(1)).sum()
}

/// The Event about a Workload after a worker refused its size.
pub(super) fn refused_event(workload: &Workload, cluster: &str, message: &str) -> EventRecord {
    let note = format!("worker cluster \"{cluster}\" does not take the size of the job: {message}");
    let (event_type, reason) = (EventType::Warning, RESIZE_REFUSED.to_owned());
    let regarding = Regarding::of(workload);
    EventRecord { regarding, event_type, action: reason.clone(), reason, note, controller: None }
}
