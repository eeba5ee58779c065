//! Members of groups and sets of pods, and held pods of a set that is gone, such as those of a LeaderWorkerSet that was deleted without
//! its dependents.
//!
//! The set alone puts its pods into groups, so a pod that is in none would wait for ever: it loses its gate, as upstream does it. A
//! member of a group has a Workload, which starts it.
//! The set is read before, see `absent_sets`.

use ::jobs::{JobObject, Pod, pods};
use index::Index;
use jiff::Timestamp;
use runtime::{watch::Key, writer::WriteOutcome};

use super::{
    Jobs,
    absent_sets::{SHOWN_AFTER, WaitingMember},
    change::{JobChange, resource, submit},
    pod_groups::PodGroups,
    readiness::ObservedPods,
    replica_sets::ReplicaSets,
    role_requests::RoleRequests,
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::{Purpose, Target, Ticket, after, listed_object},
    timers::Reevaluation,
};

impl Jobs {
    /// Members of a group of pods.
    pub(crate) fn members_of(&self, group: &Key) -> impl Iterator<Item = &JobKey> {
        self.groups.members(group)
    }

    /// Pauses a large group that was evaluated lately. Returns whether it is not evaluated now, but after its pause.
    pub(crate) fn pause_large_group(&mut self, group: &Key, ctx: &mut Context) -> bool {
        self.groups.pause_if_large(group, ctx)
    }

    /// The group of a pod.
    pub(crate) fn group_of(&self, key: &JobKey) -> Option<Key> {
        let (key, job) = self.get(key)?;
        PodGroups::of(key, job, self.config.gates)
    }

    /// The set of a pod that is in no group yet. The set puts it into one.
    pub(crate) fn set_of_new_member(&self, key: &JobKey) -> Option<JobKey> {
        let (key, job) = self.get(key)?;
        let set = ReplicaSets::of(key, job, &self.config.kinds)?;
        self.group_of(key).is_none().then_some(set)
    }

    /// Whether an object is a pod of a set.
    pub(crate) fn is_of_set(&self, key: &JobKey, job: &JobObject) -> bool {
        ReplicaSets::of(key, job, &self.config.kinds).is_some()
    }

    /// How members of groups are compared with their roles.
    pub(crate) fn role_requests<'a>(&'a self, index: &'a Index) -> RoleRequests<'a> {
        RoleRequests { index, kinds: &self.config.kinds, jobs: &self.jobs }
    }

    /// Evaluates the groups of members that request too much: what completes the requests of pods has changed.
    pub(crate) fn evaluate_held_members(&self, ctx: &mut Context) {
        let groups = self.held_members.units().filter_map(|pod| self.group_of(pod));
        groups.for_each(|group| ctx.agenda.now(Reevaluation::PodGroup(group)));
    }

    pub(super) fn pods_of<'a>(
        &'a self,
        keys: impl IntoIterator<Item = &'a JobKey>,
    ) -> Vec<&'a Pod> {
        keys.into_iter().filter_map(|key| self.jobs.get(key)?.object().as_pod()).collect()
    }

    /// The pods by which it is known whether those of a Workload are ready.
    pub(super) fn observed_pods(&self, key: &Key) -> ObservedPods<'_> {
        let is_group = self.groups.contains(key);
        let group = is_group.then(|| self.pods_of(self.groups.members(key)));
        ObservedPods { group, gates: self.config.gates }
    }

    /// Releases the held pods of a set that does not exist. `managed` says which pods are this process's to start.
    pub(crate) fn release_members_of_absent(
        &mut self,
        set: &JobKey,
        managed: &dyn Fn(&JobKey, &JobObject) -> bool,
        ctx: &mut Context,
    ) {
        // On a worker only copies are seen, so a set that is not seen may be there.
        let is_unknown = !self.config.creates_workloads || !self.kinds.lists(&set.kind);
        let waiting = if is_unknown || self.jobs.get(set).is_some() {
            Vec::new()
        } else {
            self.waiting_members(set, managed)
        };
        if waiting.is_empty() {
            self.absent_sets.forget(set);
        }
        for (key, shown) in waiting {
            match self.absent_sets.decide(set, shown, ctx.now) {
                WaitingMember::Release => self.release_member(&key, set, ctx),
                WaitingMember::Read => {
                    let waiter = Reevaluation::Job(set.clone());
                    if ctx.read_owner(&resource(&set.kind), &set.key, waiter) {
                        self.absent_sets.sent(set, ctx.now);
                    }
                }
                WaitingMember::Wait(until) => {
                    ctx.agenda.at(until, Reevaluation::Job(set.clone()));
                }
            }
        }
    }

    /// Takes the answer to the read of a set.
    pub(crate) fn set_read(&mut self, ticket: &Ticket, answer: &WriteOutcome, ctx: &mut Context) {
        let Reevaluation::Job(set) = &ticket.waiter else {
            return;
        };
        let absent = match answer {
            WriteOutcome::Done(list) => listed_object(list).is_none(),
            // The kind may be served again, and the set be there.
            _ => false,
        };
        self.absent_sets.answered(set, absent);
        ctx.agenda.now(Reevaluation::Job(set.clone()));
    }

    /// The held pods of a set that are in no group, each with the time at which the set has to be seen.
    fn waiting_members(
        &self,
        set: &JobKey,
        managed: &dyn Fn(&JobKey, &JobObject) -> bool,
    ) -> Vec<(JobKey, Timestamp)> {
        let members = self.sets.members(set).filter_map(|key| {
            let object = self.jobs.get(key)?.object();
            let pod = object.as_pod().filter(|pod| pod.is_gated() && !pod.is_deleting())?;
            let waits = self.group_of(key).is_none() && managed(key, object);
            Some((key.clone(), shown_at(pod).filter(|_| waits)?))
        });
        members.collect()
    }

    fn release_member(&self, key: &JobKey, set: &JobKey, ctx: &mut Context) {
        let Some(tracked) = self.jobs.get(key) else {
            return;
        };
        let waiter = Reevaluation::Job(set.clone());
        let pod = tracked.object().as_pod();
        let Some(pod) =
            pod.filter(|_| ctx.free_or_wait(&Target::job(key), &tracked.stamp(), &waiter))
        else {
            return;
        };
        let mut released = pod.clone();
        pods::ungate(&mut released);
        let released = Box::new(JobObject::from(released));
        submit(key, tracked, &JobChange::spec(released, Purpose::Adopt), ctx);
    }
}

/// When the set of a pod has to be seen, if there is one.
fn shown_at(pod: &Pod) -> Option<Timestamp> {
    Some(after(pod.metadata.creation_timestamp.as_ref()?.0, SHOWN_AFTER))
}
