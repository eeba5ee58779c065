//! Which pods are of which set.

use std::collections::BTreeSet;

use ::jobs::{JobObject, Kinds, replicas::set_of};

use crate::control::{context::Context, job_key::JobKey, key_map::KeyMap, timers::Reevaluation};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ReplicaSets {
    members: KeyMap<JobKey, BTreeSet<JobKey>>,
}

impl ReplicaSets {
    /// The set that a pod is one of.
    pub(super) fn of(key: &JobKey, job: &JobObject, kinds: &Kinds) -> Option<JobKey> {
        let pod = job.as_pod()?;
        kinds.iter().find_map(|kind| {
            let name = set_of(kind, pod)?;
            Some(JobKey::new(kind, &key.in_namespace(name)))
        })
    }

    /// Records a pod of a set. The set is evaluated.
    pub(super) fn join(&mut self, key: &JobKey, job: &JobObject, kinds: &Kinds, ctx: &mut Context) {
        if let Some(set) = Self::of(key, job, kinds) {
            self.members.entry(set.clone()).or_default().insert(key.clone());
            ctx.agenda.now(Reevaluation::Job(set));
        }
    }

    /// Forgets a pod of a set. The set is evaluated.
    pub(super) fn leave(
        &mut self,
        key: &JobKey,
        job: &JobObject,
        kinds: &Kinds,
        ctx: &mut Context,
    ) {
        let Some(set) = Self::of(key, job, kinds) else {
            return;
        };
        if let Some(members) = self.members.get_mut(&set) {
            members.remove(key);
            if members.is_empty() {
                self.members.remove(&set);
            }
        }
        ctx.agenda.now(Reevaluation::Job(set));
    }

    pub(super) fn members(&self, set: &JobKey) -> impl Iterator<Item = &JobKey> {
        self.members.get(set).into_iter().flatten()
    }
}
