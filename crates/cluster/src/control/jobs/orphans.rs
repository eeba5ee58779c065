//! Dispatched jobs whose Workload was removed by force, with its finalizer, before anything was withdrawn.
//!
//! The status of such a job is a copy that nothing updates any more: it would show active pods forever and keep the job from
//! getting another Workload. The dispatch machine sets its active pods to 0 once nothing runs on the worker that had the
//! copy. After a restart that worker is not known; then every worker counts, also one that cannot be reached, until it is
//! lost.

use crds::v1beta2::Workload;
use runtime::watch::Key;

use crate::control::job_key::JobKey;
use crate::control::key_map::KeyMap;

/// Such jobs, by the Workload that they had.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    jobs: KeyMap<Key, OrphanedJob>,
}

/// One such job.
#[derive(Debug)]
pub(crate) struct OrphanedJob {
    pub(crate) job: JobKey,
    /// Workers that may have a copy, by the last observation of the Workload; empty if none was observed.
    pub(crate) clusters: Vec<Box<str>>,
}

impl Orphans {
    pub(super) fn workloads(&self) -> impl Iterator<Item = &Key> {
        self.jobs.keys()
    }

    pub(super) fn get(&self, workload: &Key) -> Option<&OrphanedJob> {
        self.jobs.get(workload)
    }

    /// Records a job whose Workload is gone; `had` is the last observation of it.
    pub(super) fn add(&mut self, workload: Key, job: &JobKey, had: Option<&Workload>) {
        // The first record stays: the last observation may be forgotten later, and the clusters
        // with it.
        let orphan =
            || OrphanedJob { job: job.clone(), clusters: had.map(chosen).unwrap_or_default() };
        self.jobs.entry(workload).or_insert_with(orphan);
    }

    pub(super) fn remove(&mut self, workload: &Key) {
        self.jobs.remove(workload);
    }

    /// Forgets a job that is gone.
    pub(super) fn remove_job(&mut self, job: &JobKey) {
        self.jobs.retain(|_, one| one.job != *job);
    }
}

/// The clusters that a Workload was nominated for or recorded on.
fn chosen(workload: &Workload) -> Vec<Box<str>> {
    let status = &workload.status;
    let all = status.nominated_cluster_names.iter().chain(&status.cluster_name);
    all.map(|name| name.as_str().into()).collect()
}
