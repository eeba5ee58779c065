//! Jobs: every job as it was observed, and what it needs next.
//!
//! Inputs: observations, Workload changes, and answers. `jobs::reconcile` decides the next steps of a job; steps that write
//! the job go to the outbox, steps that concern its Workload are returned as [`WorkloadEffect`]s.
//!
//! | file | concept |
//! |---|---|
//! | `ancestors`, `children`, `unobserved_owners` | which jobs are children; what they may do; owners that are read |
//! | `owners`, `workload_jobs` | which Workloads belong to which job, and the jobs of one |
//! | `orphans` | dispatched jobs whose Workload was removed by force |
//! | `dispatchable` | whether a job can be dispatched to workers |
//! | `announcements` | Events about a job that follow from its Workload |
//! | `kind_availability` | kinds that cannot be observed, and jobs that were deleted together with theirs |
//! | `lookups` | other objects that pod sets need |
//! | `job_evaluation` | what a single job needs next |
//! | `pod_groups`, `group_evaluation` | which pods make up which group; what a group needs next, and how often |
//! | `slice_siblings` | other slices of an elastic job |
//! | `replica_sets`, `set_evaluation` | which pods are of which set; what a set needs next |
//! | `members`, `absent_sets` | members of groups and sets; held pods of a set that is gone, and the reads that show it |
//! | `refusals` | why a job or a group gets no Workload, reported once |
//! | `role_requests` | how members of groups are compared with the quota of their roles |
//! | `written_statuses`, `refused_clears`, `stored_statuses` | statuses that may not be removed, or are not stored as they are written |
//! | `prepared_starts` | starts of two writes: what was stored of the first one |
//! | `readiness` | whether the pods of a Workload are ready, and whether a group waits for replacements |
//! | `steps` | the steps of a job or a group, as writes and Events |
//! | `change` | writes of a job, and Events about it |
//! | `inputs` | configuration, inputs and results of an evaluation |
//! | `own_workloads` | Workloads that children have from before they were children |
//! | `retention` | jobs that are deleted a while after their Workload was deactivated |

mod absent_sets;
mod ancestors;
mod announcements;
mod change;
mod children;
mod dispatchable;
mod group_evaluation;
mod inputs;
mod job_evaluation;
mod kind_availability;
mod lookups;
mod members;
mod orphans;
mod own_workloads;
mod owners;
mod pod_groups;
mod prepared_starts;
mod readiness;
mod refusals;
mod refused_clears;
mod replica_sets;
mod retention;
mod role_requests;
mod set_evaluation;
mod slice_siblings;
mod steps;
mod stored_statuses;
mod unobserved_owners;
mod workload_jobs;
mod written_statuses;

use std::sync::Arc;

use ::jobs::{
    GenericJob, JobGates, JobObject, Kind,
    construct_workload::workload_name_for,
    integrations::controller,
    lookups::LookupKind,
    pods::{self, group, group::ReplacementCondition},
    prebuilt::prebuilt_name,
};
use crds::v1beta2::{ReclaimablePod, Workload};
use index::Index;
use kube::core::DynamicObject;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

pub(crate) use self::{
    ancestors::{Ancestry, FoundAncestry},
    announcements::nesting,
    change::{JobChange, event, resource},
    inputs::{JobInputs, JobsConfig, WorkloadEffect},
    orphans::OrphanedJob,
    role_requests::RoleRequests,
    workload_jobs::WorkloadJobs,
    written_statuses::WrittenStatuses,
};

use self::{
    absent_sets::AbsentSets,
    ancestors::ChildJobs,
    change::submit,
    group_evaluation::GroupEvaluation,
    job_evaluation::JobEvaluation,
    kind_availability::KindAvailability,
    lookups::Lookups,
    orphans::Orphans,
    owners::{Abandoned, Owners},
    pod_groups::PodGroups,
    prepared_starts::PreparedStarts,
    refusals::Refusals,
    replica_sets::ReplicaSets,
    set_evaluation::SetEvaluation,
    unobserved_owners::UnobservedOwners,
};
use super::{
    context::Context,
    job_key::JobKey,
    outbox::{Purpose, Settled, Subject, Target, Ticket, Tracked, decode_job},
    timers::Reevaluation,
    workloads::{WorkloadChange, Workloads},
};
use crate::control::key_map::KeyMap;

/// All observed jobs and their Workloads.
#[derive(Debug)]
pub(crate) struct Jobs {
    config: JobsConfig,
    jobs: KeyMap<JobKey, Tracked<JobObject>>,
    owners: Owners,
    unobserved_owners: UnobservedOwners,
    children: ChildJobs,
    orphans: Orphans,
    groups: PodGroups,
    lookups: Lookups,
    sets: ReplicaSets,
    refused_jobs: Refusals<JobKey>,
    prepared_starts: PreparedStarts,
    statuses: WrittenStatuses,
    refused_groups: Refusals<Key>,
    /// Workloads that the API server does not accept, by job or oldest member.
    refused_creations: Refusals<JobKey>,
    /// Members of groups that keep their gates because they request too much.
    held_members: Refusals<JobKey>,
    kinds: KindAvailability,
    absent_sets: AbsentSets,
}

impl Jobs {
    pub(crate) fn new(config: JobsConfig) -> Self {
        Self {
            jobs: KeyMap::new(),
            owners: Owners::new(config.kinds.clone()),
            config,
            unobserved_owners: UnobservedOwners::default(),
            children: ChildJobs::default(),
            orphans: Orphans::default(),
            groups: PodGroups::default(),
            lookups: Lookups::default(),
            sets: ReplicaSets::default(),
            refused_jobs: Refusals::default(),
            prepared_starts: PreparedStarts::default(),
            statuses: WrittenStatuses::default(),
            refused_groups: Refusals::default(),
            refused_creations: Refusals::default(),
            held_members: Refusals::default(),
            kinds: KindAvailability::new(),
            absent_sets: AbsentSets::default(),
        }
    }

    pub(crate) fn get(&self, key: &JobKey) -> Option<(&JobKey, &Arc<JobObject>)> {
        self.jobs.get_key_value(key).map(|(key, tracked)| (key, tracked.object()))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &JobKey> {
        self.jobs.keys()
    }

    /// Whether jobs of a kind can be observed.
    pub(crate) fn is_available(&self, kind: &Kind) -> bool {
        self.kinds.unavailable(kind).is_none()
    }

    /// What the API server makes of statuses that are written.
    pub(crate) fn statuses(&self) -> &WrittenStatuses {
        &self.statuses
    }

    pub(crate) fn gates(&self) -> JobGates {
        self.config.gates
    }

    /// The jobs of a Workload.
    pub(crate) fn of_workload<'s, 'w>(
        &'s self,
        key: &'w Key,
        workload: &'w Workload,
    ) -> WorkloadJobs<'s, 'w> {
        WorkloadJobs { jobs: &self.jobs, owners: &self.owners, key, workload }
    }

    /// The first job of a Workload.
    pub(crate) fn of(&self, key: &Key, workload: &Workload) -> Option<(&JobKey, &Arc<JobObject>)> {
        self.of_workload(key, workload).all().next()
    }

    /// The jobs of a Workload that are copied to workers.
    pub(crate) fn dispatched(
        &self,
        key: &Key,
        workload: &Workload,
    ) -> Vec<(&JobKey, &Arc<JobObject>)> {
        self.of_workload(key, workload).dispatched()
    }

    /// Workloads that a job owns.
    pub(crate) fn owned_workloads(&self, job: &JobKey) -> impl Iterator<Item = &Key> {
        self.owners.owned_by(job)
    }

    /// The sets that own a Workload.
    pub(crate) fn sets_of<'a>(
        &self,
        key: &'a Key,
        workload: &'a Workload,
    ) -> impl Iterator<Item = JobKey> {
        self.owners.sets_of(key, workload).map(|(set, _)| set)
    }

    /// The first job of a Workload, with what its pod sets need.
    fn completed(&self, key: &Key, workload: &Workload) -> Option<Arc<JobObject>> {
        self.of(key, workload).map(|(key, job)| self.lookups.complete(key, job))
    }

    /// Pods of the job of a Workload that will not run again.
    pub(crate) fn reclaimable_pods(&self, key: &Key, workload: &Workload) -> Vec<ReclaimablePod> {
        self.completed(key, workload).map(|job| job.reclaimable_pods()).unwrap_or_default()
    }

    /// The job that lost this Workload by force.
    pub(crate) fn orphan_of(&self, workload: &Key) -> Option<&OrphanedJob> {
        self.orphans.get(workload)
    }

    /// Workloads that orphaned jobs had.
    pub(crate) fn orphaned_workloads(&self) -> impl Iterator<Item = &Key> {
        self.orphans.workloads()
    }

    /// Whether anything is known of what jobs had before they started.
    #[cfg(test)]
    pub(crate) fn remembers_any(&self) -> bool {
        self.orphans.remembers_any()
    }

    /// Whether the pods of the job of a Workload are ready.
    pub(crate) fn pods_ready(&self, key: &Key, workload: &Workload) -> Option<bool> {
        let jobs = self.of_workload(key, workload);
        self.observed_pods(key).are_ready(jobs, || self.completed(key, workload))
    }

    /// The condition `WaitingForReplacementPods` of the Workload of a group, if it changes.
    pub(crate) fn replacement(
        &self,
        key: &Key,
        workload: &Workload,
        index: &Index,
    ) -> Option<ReplacementCondition> {
        self.observed_pods(key).replacement(workload, self.role_requests(index))
    }

    /// Why the job of a Workload cannot be dispatched to workers.
    pub(crate) fn undispatchable(&self, key: &Key, workload: &Workload) -> Option<String> {
        let job = self.of_workload(key, workload).first_dispatched().map(|job| &**job);
        dispatchable::refusal(job, workload, &self.config.kinds)
    }

    /// Records whether a kind can be observed, as a change of it shows. Returns whether that differs from before.
    pub(crate) fn observe_availability(
        &mut self,
        kind: &Kind,
        change: &Change<JobObject>,
        ctx: &mut Context,
    ) -> bool {
        let owners = self.owners.of_kind(kind).filter(|job| self.jobs.get(*job).is_none());
        self.kinds.observe(kind, change, owners.cloned(), ctx)
    }

    /// Records an observation; `None` if the job is gone.
    pub(crate) fn observe(
        &mut self,
        key: &JobKey,
        object: Option<Arc<JobObject>>,
        ctx: &mut Context,
    ) {
        let Some(job) = object else {
            if let Some(tracked) = self.jobs.get(key) {
                self.kinds.removed(key, tracked.object());
            }
            return self.remove(key, ctx);
        };
        self.kinds.appeared(key);
        if let Some(owner) = self.owner_of(key, &job) {
            self.children.add(owner, key);
        }
        let named = self.named_workload(key, &job);
        let before = self.jobs.get(key).and_then(|one| self.named_workload(key, one.object()));
        // A suspended job may name another prebuilt Workload.
        if let Some(before) = before.filter(|before| named.as_ref() != Some(before)) {
            self.owners.remove_name(&before, key);
            ctx.agenda.now(Reevaluation::Workload(before));
        }
        if let Some(workload) = named {
            // A prebuilt Workload may have no owner reference yet; `evaluate_with_workloads` finds
            // only Workloads that have one.
            self.owners.add_name(workload.clone(), key);
            // That of a group is evaluated after the group.
            if PodGroups::of(key, &job, self.config.gates).as_ref() != Some(&workload) {
                ctx.agenda.now(Reevaluation::Workload(workload));
            }
        }
        self.end_reports(key, &job);
        self.observe_group(key, Some(&job), ctx);
        self.lookups.observe_job(key, Some(&job));
        self.sets.join(key, &job, &self.config.kinds, ctx);
        let newer = match self.jobs.get_mut(key) {
            Some(tracked) => tracked.observe(job),
            None => {
                self.jobs.insert(key.clone(), Tracked::new(job));
                true
            }
        };
        if newer {
            self.evaluate_with_workloads(key, ctx);
        }
    }

    /// Records a change of objects that pod sets need.
    pub(crate) fn observe_looked_up(
        &mut self,
        kind: &LookupKind,
        change: Change<DynamicObject>,
        ctx: &mut Context,
    ) {
        self.lookups.observe(kind, change, ctx);
    }

    /// Records which group a pod is in; `None` if the pod is gone. A pod may join a group late, never change it.
    fn observe_group(&mut self, key: &JobKey, job: Option<&JobObject>, ctx: &mut Context) {
        let before = self.group_of(key);
        let after = job.and_then(|job| PodGroups::of(key, job, self.config.gates));
        if let Some(before) = before.filter(|before| after.as_ref() != Some(before)) {
            if self.groups.leave(&before, key) {
                self.refused_groups.remove(&before);
            }
            ctx.agenda.now(Reevaluation::PodGroup(before));
        }
        if let Some(after) = after {
            self.groups.join(after.clone(), key);
            ctx.agenda.now(Reevaluation::PodGroup(after));
        }
    }

    /// Takes a change of a Workload: its jobs are evaluated.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange, ctx: &mut Context) {
        match (&change.before, &change.after) {
            // A group has thousands of owners, and hardly any change is about them.
            (Some(before), Some(after))
                if before.metadata.owner_references == after.metadata.owner_references => {}
            (_, Some(after)) => self.owners.add_workload(&change.key, after),
            (Some(before), None) => self.workload_removed(&change.key, before, ctx),
            (None, None) => {}
        }
        if let Some(after) = &change.after {
            let jobs = self.of_workload(&change.key, after);
            let before = change.before.as_deref();
            let events = announcements::of_change(before, jobs);
            events.into_iter().for_each(|event| ctx.outbox.publish(event));
        }
        if let Some(workload) = change.after.as_ref().or(change.before.as_ref()) {
            self.evaluate_jobs_of(&change.key, workload, ctx);
        }
        replica_sets::evaluate_siblings(&self.owners, change, ctx);
        slice_siblings::evaluate_siblings(&self.owners, change, ctx);
    }

    /// Evaluates the jobs of a Workload, and their children.
    pub(crate) fn evaluate_jobs_of(&self, key: &Key, workload: &Workload, ctx: &mut Context) {
        // All members are evaluated together. A Workload without any is released.
        if self.groups.contains(key) || group::is_group_workload(workload) {
            // The group may be a replica of a set.
            let naming = self.owners.naming(key).filter(|job| job.kind.members().is_some());
            ctx.agenda.jobs(self.owners.sets_of(key, workload).map(|(set, _)| set));
            ctx.agenda.jobs(naming.cloned());
            return ctx.agenda.now(Reevaluation::PodGroup(key.clone()));
        }
        for job in self.owners.jobs_of(key, workload) {
            ctx.agenda.jobs(self.children.descendants(&job));
            ctx.agenda.now(Reevaluation::Job(job));
        }
    }

    /// Decides about one job. `managed` says whether it is this process's to suspend and start
    /// (docs/reference/kueue.md §7.3, 0d to 0g).
    pub(crate) fn evaluate(
        &mut self,
        key: &JobKey,
        managed: bool,
        inputs: &JobInputs<'_>,
        ctx: &mut Context,
    ) -> Vec<(Key, WorkloadEffect)> {
        let Some(tracked) = self.jobs.get(key) else {
            let gone = self.kinds.take_gone(key).filter(|_| self.config.finishes_orphans);
            let abandoned =
                Abandoned { job: key, command: self.kinds.command_after_deletion(key), gone };
            return self.owners.abandon(abandoned, inputs.workloads, ctx);
        };
        let waiter = Reevaluation::Job(key.clone());
        let job = Arc::clone(tracked.object());
        let mut effects = self.owners.let_former_go(key, &job, inputs.workloads);
        if !ctx.free_or_wait(&Target::job(key), &tracked.stamp(), &waiter) || !managed {
            return effects;
        }
        if job.set_size().is_some() {
            let (members, owners) = (self.sets.members(key).collect(), &self.owners);
            let (config, jobs, set) = (&self.config, &self.jobs, &*job);
            let evaluation = SetEvaluation { config, jobs, owners, key, set, members, inputs };
            effects.extend(evaluation.take(ctx));
            return effects;
        }
        let prebuilt = self.named_workload(key, &job);
        self.track_orphan(key, &job, prebuilt.as_ref(), inputs.workloads, ctx);
        // A stop that is not complete does not count as suspended, so the templates are restored by
        // now.
        if job.is_suspended() {
            self.orphans.restored(key);
        }
        let job = self.lookups.complete(key, &job);
        let evaluation = JobEvaluation {
            config: &self.config,
            jobs: &self.jobs,
            owners: &self.owners,
            key,
            job: &job,
            prebuilt: prebuilt.as_ref(),
            removed_by_force: self.orphans.removed_of(key),
            inputs,
        };
        let mut steps = evaluation.steps(ctx);
        self.refused_jobs.report_once(key, &mut steps, ctx.now);
        self.prepared_starts.revise(key, &job, &mut steps, ctx);
        tracing::trace!(job = %key, n_steps = steps.len(), outcome = ?job.finished(), "evaluated");
        effects.extend(evaluation.take(steps, ctx));
        effects
    }

    /// Decides about a group of pods. `managed` are the members that are this process's to start and stop.
    pub(crate) fn evaluate_group(
        &mut self,
        group: &Key,
        managed: &[JobKey],
        inputs: &JobInputs<'_>,
        ctx: &mut Context,
    ) -> Vec<(Key, WorkloadEffect)> {
        // Whether pods are missing, or ready, is part of the status of the Workload.
        ctx.agenda.now(Reevaluation::Workload(group.clone()));
        let is_unseen = !self.is_available(pods::kind());
        if managed.is_empty() && (self.groups.contains(group) || is_unseen) {
            return Vec::new();
        }
        GroupEvaluation { config: &self.config, jobs: &self.jobs, group, managed, inputs }.run(
            &mut self.refused_groups,
            &mut self.held_members,
            ctx,
        )
    }

    /// The job that controls another one.
    fn owner_of(&self, key: &JobKey, job: &JobObject) -> Option<JobKey> {
        self.owners.owner_key(&key.key, controller(job.metadata())?)
    }

    /// Writes what differs between a job and its next state.
    pub(crate) fn write(&mut self, key: &JobKey, change: &JobChange, ctx: &mut Context) {
        if let Some(tracked) = self.jobs.get(key)
            && submit(key, tracked, change, ctx)
        {
            self.statuses.submitted((key, &**tracked.object()), change, ctx.outbox.last_ticket());
        }
    }

    /// Whether a job may be written now.
    pub(crate) fn is_free(&self, key: &JobKey, ctx: &Context) -> bool {
        let tracked = self.jobs.get(key);
        tracked.is_some_and(|one| {
            ctx.outbox.writes().is_free(&Target::job(key), &one.stamp(), ctx.now)
        })
    }

    /// Takes the answer to a write of a job.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        (settled, workloads): (&Settled, &Workloads),
        ctx: &mut Context,
    ) {
        let Subject::Job(kind) = &ticket.target.subject else {
            return;
        };
        let key = &JobKey::new(kind, &ticket.target.key);
        let Some(tracked) = self.jobs.get_mut(key) else {
            return;
        };
        self.statuses.answered((key, &**tracked.object()), ticket, &answer, ctx);
        // A 404 removes the job; the watch may never report it.
        if answer == WriteOutcome::Gone && settled.base.as_ref() == Some(&tracked.stamp()) {
            return self.remove(key, ctx);
        }
        if let WriteOutcome::Done(value) = answer {
            let stored = decode_job(kind, &value);
            if let Some(job) = &stored {
                self.statuses.stored((key, job), ticket, ctx.now);
            }
            tracked.observe_decoded(stored);
            if ticket.purpose == Purpose::Start {
                self.start_answered(key, workloads, ctx);
            }
        }
        self.evaluate_with_workloads(key, ctx);
    }

    fn remove(&mut self, key: &JobKey, ctx: &mut Context) {
        self.observe_group(key, None, ctx);
        self.lookups.observe_job(key, None);
        self.forget_reports(key);
        self.children.set_distant(key, None);
        if let Some(tracked) = self.jobs.remove(key) {
            self.sets.leave(key, tracked.object(), &self.config.kinds, ctx);
            if let Some(owner) = self.owner_of(key, tracked.object()) {
                self.children.remove(&owner, key);
            }
            if let Some(workload) = self.named_workload(key, tracked.object()) {
                self.owners.remove_name(&workload, key);
                ctx.agenda.now(Reevaluation::Workload(workload));
            }
        }
        self.orphans.remove_job(key);
        self.evaluate_with_workloads(key, ctx);
    }

    fn evaluate_with_workloads(&self, key: &JobKey, ctx: &mut Context) {
        // The evaluation of a group is followed by that of its Workload, once for all members that change meanwhile.
        let group = self.group_of(key);
        let owned = self.owners.owned_by(key).filter(|owned| Some(*owned) != group.as_ref());
        ctx.agenda.workloads(owned.cloned());
        ctx.agenda.jobs(self.children.descendants(key));
        ctx.agenda.now(Reevaluation::Job(key.clone()));
    }

    fn workload_removed(&mut self, key: &Key, workload: &Arc<Workload>, ctx: &Context) {
        let starts = |job: &JobKey| ctx.outbox.writes().is_in_flight(&Target::job(job));
        let loses = |(key, job): (&JobKey, &Arc<JobObject>)| orphans::loses(job, || starts(key));
        for owner in self.owners.remove_workload(key, workload) {
            if self.get(&owner).is_some_and(loses) {
                self.orphans.workload_removed(owner, workload);
            }
        }
    }

    /// The Workload that the job names itself.
    fn named_workload(&self, key: &JobKey, job: &JobObject) -> Option<Key> {
        let name = prebuilt_name(job, self.config.gates).name;
        (!name.is_empty()).then(|| key.in_namespace(name))
    }

    /// Records whether the Workload of a running copy was removed by force.
    fn track_orphan(
        &mut self,
        key: &JobKey,
        job: &JobObject,
        prebuilt: Option<&Key>,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        let workload = prebuilt
            .cloned()
            .unwrap_or_else(|| key.in_namespace(&workload_name_for(job, self.config.gates)));
        let has_another = self.owners.owns_any(key) || workloads.get(&workload).is_some();
        if self.orphans.track(key, job, &workload, has_another) {
            ctx.agenda.now(Reevaluation::Workload(workload));
        }
    }
}
