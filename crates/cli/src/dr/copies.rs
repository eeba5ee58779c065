//! The copies of each Workload, over all workers, and which of them counts (docs/reference/dispatch.md §11).

use std::collections::BTreeMap;

use crds::v1beta2::Workload;
use jobs::{
    GenericJob, JobGates, JobObject, integrations::controller, prebuilt::prebuilt_name,
    remote_objects::epoch,
};

use super::{
    not_rebuilt::NotRebuilt,
    observed::{CopiedObjectName, ObservedWorker, object_name},
};

/// What one worker has of a Workload.
#[derive(Clone, Debug)]
pub struct CopySet {
    /// The name of the MultiKueueCluster.
    pub cluster: String,
    /// The clone.
    pub clone: Workload,
    /// The copies of its jobs, by name.
    pub jobs: Vec<JobObject>,
}

impl CopySet {
    /// The epoch of the clone.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        epoch(&self.clone.metadata)
    }
}

/// All copies.
#[derive(Debug, Default)]
pub struct GroupedCopies<'a> {
    /// By Workload.
    pub of_workloads: BTreeMap<CopiedObjectName, Vec<CopySet>>,
    /// Jobs without a clone, with their worker.
    pub without_clone: Vec<(&'a str, &'a JobObject)>,
}

/// Groups what the workers have.
#[must_use]
pub fn group(workers: &[ObservedWorker], gates: JobGates) -> GroupedCopies<'_> {
    let mut copies = GroupedCopies::default();
    for worker in workers {
        let mut of_clone: BTreeMap<CopiedObjectName, Vec<JobObject>> = BTreeMap::new();
        // What another object controls is no copy, whatever labels its operator has copied.
        for job in worker.jobs.iter().filter(|job| controller(job.metadata()).is_none()) {
            let named = prebuilt_name(job, gates).name.to_owned();
            let key = (object_name(job.metadata()).0, named);
            if worker.clones.iter().any(|clone| object_name(&clone.metadata) == key) {
                of_clone.entry(key).or_default().push(job.clone());
            } else {
                copies.without_clone.push((worker.cluster.as_str(), job));
            }
        }
        for clone in &worker.clones {
            let key = object_name(&clone.metadata);
            let mut jobs = of_clone.remove(&key).unwrap_or_default();
            jobs.sort_by_key(|job| job.metadata().name.clone());
            let set = CopySet { cluster: worker.cluster.clone(), clone: clone.clone(), jobs };
            copies.of_workloads.entry(key).or_default().push(set);
        }
    }
    copies
}

/// The copy that counts, and the others, of which the manager removes each.
///
/// # Errors
/// If two workers may run the job.
pub fn choose(mut sets: Vec<CopySet>) -> Result<(CopySet, Vec<CopySet>), NotRebuilt> {
    sets.sort_by_key(|set| std::cmp::Reverse((set.epoch(), !set.jobs.is_empty())));
    let mut sets = sets.into_iter();
    // Each group has at least the clone that it was made for.
    let Some(first) = sets.next() else { return Err(NotRebuilt::NoJob) };
    let others: Vec<CopySet> = sets.collect();
    let rival = |other: &&CopySet| other.epoch() == first.epoch() && !other.jobs.is_empty();
    match others.iter().find(rival) {
        Some(rival) => Err(NotRebuilt::TwoWorkers {
            first: first.cluster.clone(),
            second: rival.cluster.clone(),
            epoch: first.epoch(),
        }),
        None => Ok((first, others)),
    }
}
