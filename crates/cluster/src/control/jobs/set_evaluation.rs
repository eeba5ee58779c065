//! What a set needs next.

use ::jobs::{
    JobObject, Pod,
    construct_workload::priority_source,
    reconcile::{JobStep, ReconcileStep},
    replicas::{
        self, SetContext, is_owned_by, names_of_unowned, one_workload, replica_workload, runs_until,
    },
};
use jiff::Timestamp;
use runtime::watch::Key;

use super::{
    inputs::{JobInputs, JobsConfig, WorkloadEffect},
    owners::Owners,
    steps::{NewWorkload, StepTaker, Unit},
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    key_map::KeyMap,
    outbox::{Target, Tracked},
    timers::Reevaluation,
};

/// The evaluation of one set.
pub(super) struct SetEvaluation<'a> {
    pub(super) config: &'a JobsConfig,
    pub(super) jobs: &'a KeyMap<JobKey, Tracked<JobObject>>,
    pub(super) owners: &'a Owners,
    pub(super) key: &'a JobKey,
    pub(super) set: &'a JobObject,
    /// Pods of the set.
    pub(super) members: Vec<&'a JobKey>,
    pub(super) inputs: &'a JobInputs<'a>,
}

impl SetEvaluation<'_> {
    /// Takes the next steps. Returns what they mean for Workloads.
    pub(super) fn take(&self, ctx: &mut Context) -> Vec<(Key, WorkloadEffect)> {
        let gates = self.config.gates;
        let unit = Unit {
            waiter: Reevaluation::Job(self.key.clone()),
            first: self.set,
            key: self.key,
            had: None,
            is_unaccounted: false,
            priority: &|| priority_source(self.set, gates),
            workload: &|new, priority| {
                let copied = &self.config.keys_to_copy;
                Some(match new {
                    NewWorkload::OfReplica(replica) => {
                        replica_workload(self.set, *replica, priority, copied, gates)
                    }
                    NewWorkload::Whole | NewWorkload::Replacement(_) => {
                        one_workload(self.set, priority, copied, gates)
                    }
                })
            },
        };
        let mut steps = self.steps(ctx);
        steps.retain(|step| self.may_be_taken(step, ctx));
        if (self.inputs.priority)(&(unit.priority)()).is_none() {
            // One Event says that the class is missing, not one for each replica.
            let mut creates = 0;
            steps.retain(|step| {
                creates += usize::from(matches!(step, ReconcileStep::CreateReplicaWorkload(_)));
                !matches!(step, ReconcileStep::CreateReplicaWorkload(_)) || creates == 1
            });
        }
        let taker = StepTaker {
            unit,
            jobs: self.jobs,
            inputs: self.inputs,
            gates,
            creates_workloads: self.config.creates_workloads,
        };
        steps.into_iter().filter_map(|step| taker.take(step, ctx)).collect()
    }

    fn steps(&self, ctx: &mut Context) -> Vec<ReconcileStep<JobObject>> {
        let names = names_of_unowned(self.set, self.config.gates);
        let named: Vec<Key> = names.iter().map(|name| self.key.in_namespace(name)).collect();
        let owned = self.owners.owned_by(self.key).filter(|key| !named.contains(key));
        let workloads = owned.filter_map(|key| self.inputs.workloads.get(key));
        // Those of an earlier set of the name are left to the garbage collector.
        let owned = workloads.filter(|record| is_owned_by(record.object(), self.set));
        let named = named.iter().filter_map(|key| self.inputs.workloads.get(key));
        let workloads: Vec<_> = owned.chain(named).map(|record| &**record.object()).collect();
        let members = self.members.iter().filter_map(|key| self.jobs.get(key));
        let pods: Vec<&Pod> = members.filter_map(|pod| pod.object().as_pod()).collect();
        // A set without pods waits for those of its last size.
        let until = runs_until(&pods, ctx.now, self.config.gates);
        if let Some(until) = until.filter(|until| *until < Timestamp::MAX) {
            ctx.agenda.at(until, Reevaluation::Job(self.key.clone()));
        }
        let (gates, now) = (self.config.gates, ctx.now);
        let (workloads, pods) = (&*workloads, &*pods);
        replicas::reconcile(self.set, SetContext { workloads, pods, gates, now })
    }

    /// Whether the member that a step writes is free. The set is evaluated again when it is.
    fn may_be_taken(&self, step: &ReconcileStep<JobObject>, ctx: &mut Context) -> bool {
        let ReconcileStep::Job(JobStep::Adopt(pod)) = step else {
            return true;
        };
        let name = ::jobs::GenericJob::metadata(&**pod).name.as_deref().unwrap_or_default();
        let key = self.members.iter().find(|key| &*key.key.name == name);
        let tracked = key.and_then(|key| Some((key, self.jobs.get(key)?)));
        let waiter = Reevaluation::Job(self.key.clone());
        tracked.is_some_and(|(key, one)| ctx.free_or_wait(&Target::job(key), &one.stamp(), &waiter))
    }
}
