//! The jobs of every kind that a worker has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ::jobs::{JobObject, Kind, Kinds, bounded_status::bounded_status};
use jiff::{SignedDuration, Timestamp};
use runtime::watch::{Change, Key};

use super::copies::Copies;
use crate::control::{job_key::JobKey, key_map::KeyMap, outbox::Tracked};

/// See the module.
#[derive(Debug)]
pub(crate) struct JobCopies {
    by_kind: KeyMap<Kind, Copies<JobObject>>,
    /// Copies with a cut status, and whether that is announced.
    cut: BTreeMap<JobKey, bool>,
}

impl JobCopies {
    /// Jobs of these kinds, none of them listed.
    pub(crate) fn new(kinds: &Kinds) -> Self {
        let by_kind = kinds.iter().map(|kind| (kind.clone(), Copies::default())).collect();
        Self { by_kind, cut: BTreeMap::new() }
    }

    pub(crate) fn get(&self, job: &JobKey) -> Option<&Tracked<JobObject>> {
        self.by_kind.get(&job.kind)?.get(&job.key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_kind.values().all(Copies::is_empty)
    }

    /// Whether every kind was listed since the worker was connected, as far as it can be.
    pub(crate) fn is_listed(&self) -> bool {
        self.by_kind.values().all(Copies::is_listed)
    }

    /// Kinds that were not listed since the worker was connected.
    pub(crate) fn unlisted(&self) -> impl Iterator<Item = &Kind> {
        self.by_kind.iter().filter(|(_, copies)| !copies.is_listed()).map(|(kind, _)| kind)
    }

    /// Since when a job of this kind that is not here may exist all the same.
    pub(crate) fn forbidden_since(&self, kind: &Kind) -> Option<Timestamp> {
        self.by_kind.get(kind)?.forbidden_since()
    }

    /// Whether the worker is known not to serve this kind.
    pub(crate) fn is_not_served(&self, kind: &Kind) -> bool {
        self.by_kind.get(kind).is_some_and(Copies::is_not_served)
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { by_kind, cut: _ } = self;
        by_kind.for_each_mut(|_, copies| copies.clock_jumped(by));
    }

    /// The connection ended: what was observed stays, and does not count as listed.
    pub(crate) fn disconnect(&mut self) {
        self.by_kind.for_each_mut(|_, copies| copies.disconnect());
    }

    /// Records a change of a kind. Returns the jobs that it concerns. `observe_version` is as for clones.
    pub(crate) fn observe(
        &mut self,
        kind: &Kind,
        change: Change<JobObject>,
        now: Timestamp,
        mut observe_version: impl FnMut(&JobKey, Option<u64>) -> bool,
    ) -> BTreeSet<JobKey> {
        let change = change.map(|object| self.limited_job(kind, object));
        let copies = self.by_kind.entry(kind.clone()).or_default();
        let observe_version = |key: &_, version| observe_version(&JobKey::new(kind, key), version);
        let keys = copies.observe(change, now, observe_version);
        let keys: BTreeSet<JobKey> = keys.iter().map(|key| JobKey::new(kind, key)).collect();
        let gone = |job: &JobKey| keys.contains(job) && copies.get(&job.key).is_none();
        self.cut.retain(|job, _| !gone(job));
        keys
    }

    /// Jobs with a status that was cut since the last call. One that is not known yet is left for a later call.
    pub(crate) fn take_cut(&mut self, is_known: impl Fn(&JobKey) -> bool) -> Vec<JobKey> {
        let new = self.cut.iter_mut().filter(|(job, announced)| !**announced && is_known(job));
        let announced = new.map(|(job, announced)| {
            *announced = true;
            job.clone()
        });
        announced.collect()
    }

    /// A job with no status over the limit.
    fn limited_job(&mut self, kind: &Kind, object: Arc<JobObject>) -> Arc<JobObject> {
        let bounded = bounded_status(&object);
        if bounded.is_none() && self.cut.is_empty() {
            return object;
        }
        let job = JobKey::new(kind, &Key::of(&*object));
        match bounded {
            Some(bounded) => {
                self.cut.entry(job).or_insert(false);
                Arc::new(bounded)
            }
            None => {
                self.cut.remove(&job);
                object
            }
        }
    }

    /// Records the job that a create or a delete was answered with, if any.
    pub(crate) fn observe_answer(&mut self, job: &JobKey, answer: Option<JobObject>) {
        if let Some(copies) = self.by_kind.get_mut(&job.kind) {
            let answer = answer.map(|copy| bounded_status(&copy).unwrap_or(copy));
            copies.observe_answer(&job.key, answer);
        }
    }

    pub(crate) fn remove(&mut self, job: &JobKey) {
        if let Some(copies) = self.by_kind.get_mut(&job.kind) {
            copies.remove(&job.key);
        }
    }
}
