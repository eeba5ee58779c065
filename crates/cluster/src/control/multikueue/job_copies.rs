//! The jobs of every kind that a worker has.

use std::collections::BTreeSet;

use ::jobs::{JobObject, Kind, Kinds};
use jiff::Timestamp;
use runtime::watch::Change;

use super::copies::Copies;
use crate::control::{job_key::JobKey, key_map::KeyMap, outbox::Tracked};

/// See the module.
#[derive(Debug)]
pub(super) struct JobCopies {
    by_kind: KeyMap<Kind, Copies<JobObject>>,
}

impl JobCopies {
    /// Jobs of these kinds, none of them listed.
    pub(super) fn new(kinds: &Kinds) -> Self {
        Self { by_kind: kinds.iter().map(|kind| (kind.clone(), Copies::default())).collect() }
    }

    pub(super) fn get(&self, job: &JobKey) -> Option<&Tracked<JobObject>> {
        self.by_kind.get(&job.kind)?.get(&job.key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_kind.values().all(Copies::is_empty)
    }

    /// Whether every kind was listed since the worker was connected, as far as it can be.
    pub(super) fn is_listed(&self) -> bool {
        self.by_kind.values().all(Copies::is_listed)
    }

    /// Kinds that were not listed since the worker was connected.
    pub(super) fn unlisted(&self) -> impl Iterator<Item = &Kind> {
        self.by_kind.iter().filter(|(_, copies)| !copies.is_listed()).map(|(kind, _)| kind)
    }

    /// Since when a job of this kind that is not here may exist all the same.
    pub(super) fn forbidden_since(&self, kind: &Kind) -> Option<Timestamp> {
        self.by_kind.get(kind)?.forbidden_since()
    }

    /// The connection ended: what was observed stays, and does not count as listed.
    pub(super) fn disconnect(&mut self) {
        self.by_kind.for_each_mut(|_, copies| copies.disconnect());
    }

    /// Records a change of a kind. Returns the jobs that it concerns. `observe_version` is as for clones.
    pub(super) fn observe(
        &mut self,
        kind: &Kind,
        (change, now): (Change<JobObject>, Timestamp),
        mut observe_version: impl FnMut(&JobKey, Option<u64>) -> bool,
    ) -> BTreeSet<JobKey> {
        let copies = self.by_kind.entry(kind.clone()).or_default();
        let observe_version = |key: &_, version| observe_version(&JobKey::new(kind, key), version);
        let keys = copies.observe(change, now, observe_version);
        keys.iter().map(|key| JobKey::new(kind, key)).collect()
    }

    /// Records the job that a create or a delete was answered with, if any.
    pub(super) fn observe_answer(&mut self, job: &JobKey, answer: Option<JobObject>) {
        if let Some(copies) = self.by_kind.get_mut(&job.kind) {
            copies.observe_answer(&job.key, answer);
        }
    }

    pub(super) fn remove(&mut self, job: &JobKey) {
        if let Some(copies) = self.by_kind.get_mut(&job.kind) {
            copies.remove(&job.key);
        }
    }
}
