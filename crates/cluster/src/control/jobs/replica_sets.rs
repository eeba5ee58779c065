//! Which pods are of which set.

use std::sync::Arc;

use ::jobs::{
    JobObject, Kinds,
    replicas::{replica_of, set_of},
};
use crds::v1beta2::Workload;

use super::owners::Owners;
use crate::control::{
    context::Context, job_key::JobKey, key_map::KeyMap, key_set::KeySet, timers::Reevaluation,
    workloads::WorkloadChange,
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ReplicaSets {
    members: KeyMap<JobKey, KeySet<JobKey>>,
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
        self.members.remove_member(&set, key);
        ctx.agenda.now(Reevaluation::Job(set));
    }

    pub(super) fn members(&self, set: &JobKey) -> impl Iterator<Item = &JobKey> {
        self.members.get(set).into_iter().flatten()
    }
}

/// Evaluates the other replicas of a set when one of them comes to a cluster or leaves it: they are bound to it.
pub(super) fn evaluate_siblings(owners: &Owners, change: &WorkloadChange, ctx: &mut Context) {
    let sides = [&change.before, &change.after];
    let Some(workload) = sides.into_iter().flatten().find(|one| replica_of(one).is_some()) else {
        return;
    };
    let clusters = |workload: &Option<Arc<Workload>>| {
        let status = &workload.as_ref()?.status;
        Some((status.cluster_name.clone(), status.nominated_cluster_names.clone()))
    };
    let [before, after] = sides.map(|one| clusters(one).unwrap_or_default());
    if before != after {
        let sets = owners.sets_of(&change.key, workload);
        sets.for_each(|(set, _)| ctx.agenda.workloads(owners.owned_by(&set).cloned()));
    }
}
