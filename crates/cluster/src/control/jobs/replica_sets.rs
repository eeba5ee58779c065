//! Which pods are of which set.

use std::sync::Arc;

use ::jobs::{
    GenericJob, JobObject, Kinds, Pod,
    integrations::controller,
    replicas::{replica_of, set_of},
};
use crds::v1beta2::Workload;
use runtime::watch::Key;

use super::owners::Owners;
use crate::control::{
    context::Context, job_key::JobKey, key_map::KeyMap, key_set::KeySet, outbox::Tracked,
    timers::Reevaluation, workloads::WorkloadChange,
};

/// The pods of each set.
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

    /// Whether a set that is observed controls a pod. The pod is compared by the uid of its controller, or, if the controller belongs to
    /// the set in its turn, by the name of the set.
    pub(super) fn is_of_observed(
        pod: &Pod,
        kinds: &Kinds,
        jobs: &KeyMap<JobKey, Tracked<JobObject>>,
    ) -> bool {
        let Some(controller) = controller(&pod.metadata) else {
            return false;
        };
        let namespace = pod.metadata.namespace.as_deref().map(Into::into);
        kinds.iter().any(|kind| {
            let Some(name) = set_of(kind, pod) else {
                return false;
            };
            let key = Key { namespace: namespace.clone(), name: name.into() };
            let set = jobs.get(&JobKey::new(kind, &key));
            let is_direct = kind.is_kind_of(&controller.api_version, &controller.kind);
            set.is_some_and(|set| {
                !is_direct || set.object().metadata().uid.as_ref() == Some(&controller.uid)
            })
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
