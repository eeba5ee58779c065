//! Dispatched jobs whose Workload was removed by force, with its finalizer, before anything was withdrawn.
//!
//! The status of such a job is a copy that nothing updates any more: it would show active pods forever and keep the job from
//! getting another Workload. The dispatch machine sets its active pods to 0 once nothing runs on the worker that had the
//! copy. After a restart that worker is not known; then every worker counts, also one that cannot be reached, until it is
//! lost.

use std::sync::Arc;

use ::jobs::{GenericJob, JobObject};
use crds::v1beta2::Workload;
use runtime::watch::Key;

use crate::control::job_key::JobKey;
use crate::control::key_map::KeyMap;

/// Such jobs, by the Workload that they had, and what their Workloads were.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    jobs: KeyMap<Key, OrphanedJob>,
    /// By running job: its Workload that was removed by force, to restore its templates and to know its clusters.
    removed: KeyMap<JobKey, Arc<Workload>>,
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

    /// Whether a running job lost its Workload.
    #[cfg(test)]
    pub(super) fn remembers_any(&self) -> bool {
        !self.removed.is_empty()
    }

    /// The Workload that a running job lost.
    pub(super) fn removed_of(&self, job: &JobKey) -> Option<&Arc<Workload>> {
        self.removed.get(job)
    }

    /// Records that the Workload of a job that runs, or is being started, was removed.
    pub(super) fn workload_removed(&mut self, job: JobKey, workload: &Arc<Workload>) {
        self.removed.insert(job, Arc::clone(workload));
    }

    /// Forgets the Workload of a job whose templates are restored.
    pub(super) fn restored(&mut self, job: &JobKey) {
        self.removed.remove(job);
    }

    /// Records whether a job is the running copy of a Workload that was removed. Returns whether it is.
    pub(super) fn track(
        &mut self,
        key: &JobKey,
        job: &JobObject,
        workload: &Key,
        has_another: bool,
    ) -> bool {
        // The dispatch of another Workload, or of a new one with this name, updates the status of the job.
        let runs = job.is_managed_elsewhere() && job.is_active() && job.finished().is_none();
        let is_orphan = runs && !has_another;
        if is_orphan {
            self.add(workload.clone(), key);
        } else {
            self.jobs.remove(workload);
        }
        is_orphan
    }

    fn add(&mut self, workload: Key, job: &JobKey) {
        // The first record stays: the last observation may be forgotten later, and the clusters
        // with it.
        let had = self.removed.get(job);
        let clusters = || had.map(|workload| chosen(workload)).unwrap_or_default();
        let orphan = || OrphanedJob { job: job.clone(), clusters: clusters() };
        self.jobs.entry(workload).or_insert_with(orphan);
    }

    /// Forgets a job that is gone.
    pub(super) fn remove_job(&mut self, job: &JobKey) {
        self.removed.remove(job);
        self.jobs.retain(|_, one| one.job != *job);
    }
}

/// Whether a job has additions of a start, which a Workload that is removed now restores.
pub(super) fn loses(job: &JobObject, starts: impl FnOnce() -> bool) -> bool {
    // Pods that ran are not restored.
    let one = job.as_pod().is_none() && job.set_size().is_none() && !job.is_skipped();
    // A write in flight may be the start. If the job is suspended after it, the record goes.
    one && job.finished().is_none() && (!job.is_suspended() || starts())
}

/// The clusters that a Workload was nominated for or recorded on.
fn chosen(workload: &Workload) -> Vec<Box<str>> {
    let status = &workload.status;
    let all = status.nominated_cluster_names.iter().chain(&status.cluster_name);
    all.map(|name| name.as_str().into()).collect()
}
