//! Which slice of an elastic job a copy on a worker belongs to, while it names an earlier one (docs/reference/multikueue.md §2.13).
//!
//! ```text
//! W2 admitted, W1 finished (WorkloadSliceReplaced) --> the copy that names W1 is W2's --one write--> it names W2 --> clone of W1 goes
//! ```
//! The hub says it: a slice that is over, or gone, hands its copies to the slice of the same chain that has quota on that worker. So a
//! write to the copy may fail, or wait for a connection, through any number of slices.

use ::jobs::{
    GenericJob, JobObject, elastic_copies::shrinks_on_workers, elastic_ungater::chain_of,
    prebuilt::prebuilt_name, set_copies,
};
use crds::{
    names::{conditions::FINISHED, reasons::WORKLOAD_SLICE_REPLACED},
    v1beta2::Workload,
};
use index::status::find;
use runtime::watch::Key;

use crate::control::{
    elastic_slices::{keeps_quota, replaces},
    job_key::JobKey,
    jobs::Jobs,
    multikueue::{copies::copy_stamp::copy_stamp, workers::worker::Worker},
    workloads::{TrackedWorkload, Workloads},
};

/// What slices are found by.
#[derive(Clone, Copy)]
pub(crate) struct SliceHeirs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
}

impl<'a> SliceHeirs<'a> {
    /// The later slice that a copy belongs to; `None` if it belongs to the one that it names.
    pub(crate) fn heir(
        self,
        job_key: &JobKey,
        copy: &JobObject,
        worker: &Worker,
    ) -> Option<&'a Key> {
        let (_, job) = self.jobs.get(job_key)?;
        if !shrinks_on_workers(&**job, self.jobs.gates()) || !job.is_managed_elsewhere() {
            return None;
        }
        let named = job_key.in_namespace(prebuilt_name(copy, self.jobs.gates()).name);
        if !self.workloads.get(&named).is_none_or(|one| was_replaced(one.object())) {
            return None;
        }
        // The name of the chain is that of one job: a copy that an earlier job of the name has left belongs to no slice.
        let chain = chain_of(worker.clones.get(&named)?.object())?;
        let stamped = copy_stamp(copy.metadata()).hub_version;
        let takes = |record: &TrackedWorkload| {
            let slice = record.object();
            // A copy with a later stamp names a slice that this process does not know yet.
            record.phase().holds_quota()
                && chain_of(slice) == Some(chain)
                && slice.status.cluster_name.as_deref() == Some(worker.name())
                && stamped < Some(record.version())
        };
        let owned = self.jobs.owned_workloads(job_key).filter(|key| **key != named);
        let slices: Vec<(&Key, &TrackedWorkload)> = owned
            .filter_map(|key| Some((key, self.workloads.get(key).filter(|one| takes(one))?)))
            .collect();
        let is_last = |key: &Key| !slices.iter().any(|(_, other)| replaces(other.object(), key));
        slices.iter().map(|(key, _)| *key).find(|key| is_last(key))
    }

    /// The copies of a job that a slice has inherited on a worker.
    pub(crate) fn inherited<'j>(
        self,
        slice: &Key,
        jobs: impl Iterator<Item = &'j JobKey>,
        worker: &Worker,
    ) -> Vec<&'j JobKey> {
        let is_inherited = |key: &&JobKey| {
            let copy = worker.jobs.get(key).map(|one| one.object());
            copy.is_some_and(|copy| {
                !set_copies::is_shared(&**copy) && self.heir(key, copy, worker) == Some(slice)
            })
        };
        jobs.filter(is_inherited).collect()
    }

    /// Whether a later slice with quota replaces a Workload.
    pub(crate) fn has_successor(self, key: &Key, workload: &Workload) -> bool {
        let jobs = self.jobs.of_workload(key, workload).all();
        let mut slices = jobs.flat_map(|(job, _)| self.jobs.owned_workloads(job));
        slices.any(|other| {
            let record = self.workloads.get(other).filter(|one| keeps_quota(one));
            record.is_some_and(|one| replaces(one.object(), key))
        })
    }
}

/// Whether a slice ended because another one has its place.
fn was_replaced(slice: &Workload) -> bool {
    let finished = find(&slice.status.conditions, FINISHED);
    finished.is_some_and(|one| one.status == "True" && one.reason == WORKLOAD_SLICE_REPLACED)
}
