//! What a child of a managed job may do: it runs while its ancestor lets it, and never gets a Workload.

use std::sync::Arc;

use ::jobs::{
    GenericJob, JobObject, Pod, ancestor_search::AncestorError, integrations::controller,
};
use jiff::{SignedDuration, Timestamp};
use runtime::{watch::Key, writer::WriteOutcome};

use super::{
    Jobs,
    ancestors::{self, Ancestry, FoundAncestry, KnownOwners, OwnerReads},
    inputs::{JobInputs, WorkloadEffect},
    own_workloads::{self, OwnWorkloads},
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::Settled,
    timers::Reevaluation,
    workloads::{WorkloadPhase, Workloads},
};

impl Jobs {
    /// Whether a job is a child, and of which managed one. A pod of a set is none: its group starts it. A pod that a parent holds
    /// is none, also if another managed job controls it, as a driver does its executors: only its own Workload starts it.
    pub(crate) fn ancestry(
        &self,
        key: &JobKey,
        job: &Arc<JobObject>,
        now: Timestamp,
    ) -> Result<FoundAncestry, AncestorError> {
        let is_held = job.as_pod().is_some_and(Pod::has_suspending_parent);
        if controller(job.metadata()).is_none() || is_held || self.is_of_set(key, job) {
            return Ok(FoundAncestry::top());
        }
        let Self { jobs, owners, unobserved_owners: unobserved, kinds, config, .. } = self;
        let known = KnownOwners { jobs, owners, unobserved, kinds, config, now };
        ancestors::ancestry(key, job, &known)
    }

    /// Reads what the search for the ancestor of a job needs, now and later. The job is evaluated after the answer.
    pub(crate) fn read_owners(&self, job: &JobKey, found: &FoundAncestry, ctx: &mut Context) {
        let OwnerReads { now, later } = &found.reads;
        let kind =
            now.as_ref().and_then(|owner| Some((owner, self.config.managed.owner_kind(owner)?)));
        if let Some((owner, kind)) = kind {
            self.unobserved_owners.read(job, owner, &kind, ctx);
        }
        if let Some(later) = later {
            ctx.agenda.at(*later, Reevaluation::Job(job.clone()));
        }
    }

    /// Takes the answer to a read of an owner.
    pub(crate) fn owner_answered(
        &mut self,
        answer: &WriteOutcome,
        settled: &Settled,
        now: Timestamp,
    ) {
        self.unobserved_owners.answered(answer, settled, now);
    }

    /// The clock jumped: what was read is as old as before, and what rests does so for as long.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            config: _,
            jobs: _,
            owners: _,
            unobserved_owners,
            children: _,
            orphans: _,
            // `rests_until` ignores an end that is further away than the longest pause.
            groups: _,
            lookups: _,
            sets: _,
            refused_jobs,
            prepared_starts,
            statuses,
            refused_groups,
            refused_creations,
            held_members,
            kinds: _,
            absent_sets,
        } = self;
        unobserved_owners.clock_jumped(by);
        absent_sets.clock_jumped(by);
        prepared_starts.clock_jumped(by);
        statuses.clock_jumped(by);
        for refusals in [refused_jobs, refused_creations, held_members] {
            refusals.clock_jumped(by);
        }
        refused_groups.clock_jumped(by);
    }

    /// Decides about a child, or a job of which that is not known yet: it runs only while its ancestor lets it
    /// (docs/reference/kueue.md §7.3, row 0g). Its owner starts it. A Workload of its own that still counts decides first.
    pub(crate) fn evaluate_child(
        &mut self,
        key: &JobKey,
        ancestry: &Ancestry,
        inputs: &JobInputs<'_>,
        ctx: &mut Context,
    ) -> Vec<(Key, WorkloadEffect)> {
        match self.own_workloads(key, inputs.workloads) {
            OwnWorkloads::Count => return self.evaluate(key, true, inputs, ctx),
            // A start of the job may be in flight.
            OwnWorkloads::Surplus(surplus)
                if !matches!(ancestry, Ancestry::Unread | Ancestry::OwnerUnseen)
                    && self.is_free(key, ctx) =>
            {
                return own_workloads::delete(surplus);
            }
            OwnWorkloads::Surplus(_) | OwnWorkloads::None => {}
        }
        if let Ancestry::ChildOf(ancestor) = ancestry {
            self.follow_ancestor(key, ancestor, inputs.workloads, ctx);
        }
        Vec::new()
    }

    /// The unfinished Workloads that a job controls.
    fn own_workloads(&self, key: &JobKey, workloads: &Workloads) -> OwnWorkloads {
        let Some((key, job)) = self.get(key) else { return OwnWorkloads::None };
        let named = self.named_workload(key, job);
        let how = (named.as_ref(), self.config.gates);
        let all = self.owners.workloads_of((key, job), how, workloads);
        own_workloads::own_workloads(key, job, all)
    }

    fn follow_ancestor(
        &mut self,
        key: &JobKey,
        ancestor: &JobKey,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        self.link_to_ancestor(key, ancestor);
        let may_run = self.lets_children_run(ancestor, workloads);
        if let Some(tracked) = self.jobs.get(key).filter(|_| !may_run) {
            ancestors::stop_child(key, tracked, ctx);
        }
    }

    /// The child is evaluated with its ancestor, also if an owner between them is not observed.
    fn link_to_ancestor(&mut self, key: &JobKey, ancestor: &JobKey) {
        let of_unobserved = self.get(key).is_some_and(|(_, job)| self.owner_of(key, job).is_none());
        self.children.set_distant(key, of_unobserved.then_some(ancestor));
    }

    /// Whether an unfinished Workload of a job is admitted; of an elastic job, whether one is not evicted.
    fn lets_children_run(&self, job: &JobKey, workloads: &Workloads) -> bool {
        let known = self.get(job);
        let named = known.and_then(|(key, job)| self.named_workload(key, job));
        let keys = self.owners.owned_by(job).chain(&named);
        let phases: Vec<WorkloadPhase> =
            keys.filter_map(|key| workloads.get(key)).map(|record| record.phase()).collect();
        if phases.contains(&WorkloadPhase::Admitted) {
            return true;
        }
        // A gate holds the pods that no slice grants. While a slice is being evicted the others do not count: the job stops first.
        let elastic = known.is_some_and(|(_, job)| job.is_elastic(self.config.gates));
        let waits = |phase| matches!(phase, WorkloadPhase::Pending | WorkloadPhase::QuotaReserved);
        elastic && !phases.contains(&WorkloadPhase::Evicting) && phases.into_iter().any(waits)
    }
}
