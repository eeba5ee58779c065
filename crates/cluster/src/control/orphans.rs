//! Dispatched jobs whose Workload was taken away by force, with its finalizer, before anything was withdrawn.
//!
//! The status of such a job is a copy that nobody brings up to date any more: it would show active pods for ever, and get
//! no other Workload. It is told that nothing runs when that is so on every worker. Which one had it is not known any more,
//! and so all of them count, also those that cannot be reached, until they are lost.

use std::collections::{BTreeMap, BTreeSet};

use ::dispatch::life::Hub;
use ::jobs::{Job, JobKind, workload::name_for};
use engine::ids::ClusterId;
use runtime::watch::Key;

use super::{Control, due::What};

/// Such jobs, by the Workload that they had.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    jobs: BTreeMap<Key, Key>,
}

impl Orphans {
    /// The Workloads that they had.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &Key> {
        self.jobs.keys()
    }

    pub(crate) fn contains(&self, workload: &Key) -> bool {
        self.jobs.contains_key(workload)
    }
}

impl Control {
    /// Notes whether a job is one of these. `named` is the Workload that it names itself.
    pub(super) fn note_orphan(&mut self, key: &Key, job: &Job, named: Option<&Key>) {
        let workload = named.cloned().unwrap_or_else(|| {
            let name = name_for(job, self.settings.jobs);
            Key { namespace: key.namespace.clone(), name: name.into() }
        });
        let has_another = self.jobs.owns_any(key) || self.workloads.contains_key(&workload);
        let runs = job.is_copied() && job.active() && job.outcome().is_none();
        if has_another || !runs {
            self.orphans.jobs.remove(&workload);
        } else {
            self.orphans.jobs.insert(workload.clone(), key.clone());
            self.due.now(What::Workload(workload));
        }
    }

    /// A job is not there any more.
    pub(super) fn forget_orphan(&mut self, job: &Key) {
        self.orphans.jobs.retain(|_, one| one != job);
    }

    /// The job of a Workload that is not there any more.
    pub(super) fn orphan(&self, workload: &Key) -> Option<(&Key, &Job)> {
        self.jobs.get(self.orphans.jobs.get(workload)?)
    }

    /// The hub's side of a Workload that is not there: what is gone holds nothing.
    pub(super) fn hub_without(&mut self, workload: &Key) -> Hub {
        let Some(job) = self.orphan(workload).map(|(_, job)| super::remote::hub_job(job)) else {
            return Hub::default();
        };
        let registered = self.clusters.names().map(|name| self.fleet.cluster(name));
        let known = self.remotes.values().map(|remote| remote.id);
        let all: BTreeSet<ClusterId> = registered.chain(known).collect();
        Hub { sent: true, nominated: all.into_iter().collect(), job, ..Hub::default() }
    }
}
