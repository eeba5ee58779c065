//! The jobs of a Workload: its owners, or a job that names it.

use std::sync::Arc;

use ::jobs::{GenericJob, JobObject, integrations::controller};
use crds::v1beta2::Workload;
use runtime::watch::Key;

use super::owners::Owners;
use crate::control::{job_key::JobKey, key_map::KeyMap, outbox::Tracked};

/// The jobs of a Workload. A group has thousands of jobs, and most callers need one: each is looked up when the caller asks for it.
#[derive(Clone, Copy)]
pub(crate) struct WorkloadJobs<'s, 'w> {
    pub(super) jobs: &'s KeyMap<JobKey, Tracked<JobObject>>,
    pub(super) owners: &'s Owners,
    pub(super) key: &'w Key,
    pub(super) workload: &'w Workload,
}

impl<'s, 'w> WorkloadJobs<'s, 'w> {
    /// All of them.
    pub(crate) fn all(self) -> impl Iterator<Item = (&'s JobKey, &'s Arc<JobObject>)> {
        let owners = self.owners.owners(self.key, self.workload);
        let mut owners = owners.filter_map(move |(job, uid)| self.owner(&job, uid)).peekable();
        let naming = owners.peek().is_none().then(|| self.owners.naming(self.key));
        let naming = naming.into_iter().flatten().filter_map(move |job| self.get(job));
        // Operators copy labels to the objects that they create: what another object controls names no Workload itself.
        let naming = naming.filter(|(_, job)| controller(job.metadata()).is_none());
        owners.chain(naming.take(1))
    }

    /// Those that are copied to workers. Pods of a set are not: they are made from its copy.
    pub(crate) fn dispatched(self) -> Vec<(&'s JobKey, &'s Arc<JobObject>)> {
        let sets: Vec<_> = self.sets().collect();
        if sets.is_empty() { self.all().collect() } else { sets }
    }

    /// The first one that is copied to workers.
    pub(crate) fn first_dispatched(self) -> Option<&'s Arc<JobObject>> {
        self.sets().next().or_else(|| self.all().next()).map(|(_, job)| job)
    }

    fn sets(self) -> impl Iterator<Item = (&'s JobKey, &'s Arc<JobObject>)> {
        let sets = self.owners.sets_of(self.key, self.workload);
        let sets = sets.filter_map(move |(job, uid)| self.owner(&job, uid));
        sets.filter(|(_, job)| job.set_size().is_some())
    }

    /// An owner of the Workload. A job that was recreated under the name of an owner is none.
    fn owner(self, job: &JobKey, uid: &str) -> Option<(&'s JobKey, &'s Arc<JobObject>)> {
        self.get(job).filter(|(_, job)| job.metadata().uid.as_deref() == Some(uid))
    }

    fn get(self, key: &JobKey) -> Option<(&'s JobKey, &'s Arc<JobObject>)> {
        self.jobs.get_key_value(key).map(|(key, tracked)| (key, tracked.object()))
    }
}
