//! What a single job needs next, and how long it stays when its Workload was deactivated.

use std::sync::Arc;

use ::jobs::{
    GenericJob, JobObject,
    construct_workload::{construct_workload, priority_source},
    reconcile::{self, ReconcileContext, ReconcileStep, WorkloadStep},
};
use crds::{
    meta::is_deleting,
    names::{
        conditions::{EVICTED, FINISHED},
        reasons::UNREADABLE_STATUS,
    },
    v1beta2::Workload,
};
use runtime::watch::Key;

use super::{
    inputs::{JobInputs, JobsConfig, WorkloadEffect},
    owners::{Owners, belongs_to},
    retention,
    steps::{NewWorkload, StepTaker, Unit},
};
use crate::control::{
    context::Context, job_key::JobKey, key_map::KeyMap, outbox::Tracked, timers::Reevaluation,
};

/// The evaluation of one job, with what its pod sets need.
pub(super) struct JobEvaluation<'a> {
    pub(super) config: &'a JobsConfig,
    pub(super) jobs: &'a KeyMap<JobKey, Tracked<JobObject>>,
    pub(super) owners: &'a Owners,
    pub(super) key: &'a JobKey,
    pub(super) job: &'a JobObject,
    /// The Workload that the job names.
    pub(super) prebuilt: Option<&'a Key>,
    /// The Workload that was removed by force while the job ran.
    pub(super) removed_by_force: Option<&'a Arc<Workload>>,
    pub(super) inputs: &'a JobInputs<'a>,
}

impl JobEvaluation<'_> {
    /// The next steps.
    pub(super) fn steps(&self, ctx: &Context) -> Vec<ReconcileStep<JobObject>> {
        let workloads = self.workloads();
        // The removed Workload may be that of an earlier job of this name, which has another uid.
        let removed = self.removed_by_force.map(Arc::as_ref);
        let how = (false, self.config.gates);
        let context = ReconcileContext {
            workloads: &workloads,
            previous_workload: removed.filter(|workload| belongs_to(self.job, workload, how)),
            prebuilt: self.prebuilt.is_some(),
            flavors: self.inputs.flavors,
            gates: self.config.gates,
            now: ctx.now,
        };
        let mut steps = reconcile::reconcile(self.job, context);
        steps.extend(self.report_status(&steps));
        steps.extend(self.delete_former());
        steps
    }

    /// Deletes the Workloads of an earlier job of the name. Without the gate FinishOrphanedWorkloads they are this job's.
    fn delete_former(&self) -> Vec<ReconcileStep<JobObject>> {
        let is_over = is_deleting(self.job.metadata());
        if self.job.is_skipped() || is_over || !self.config.gates.finish_orphans {
            return Vec::new();
        }
        let workloads = self.inputs.workloads;
        let former = self.owners.of_former_job(self.key, self.job, self.prebuilt, workloads);
        former.into_iter().map(|workload| WorkloadStep::Delete.of(workload)).collect()
    }

    /// Reports a status that cannot be read, unless there is more to say.
    fn report_status(
        &self,
        steps: &[ReconcileStep<JobObject>],
    ) -> Option<ReconcileStep<JobObject>> {
        if self.job.is_skipped() || steps.iter().any(is_refusal) {
            return None;
        }
        let message = self.job.unreadable_status()?.to_string();
        Some(ReconcileStep::Refuse { reason: UNREADABLE_STATUS, message })
    }

    fn workloads(&self) -> Vec<&Workload> {
        let of_job = (self.key, self.job);
        let how = (self.prebuilt, self.config.gates);
        self.owners.workloads_of(of_job, how, self.inputs.workloads)
    }

    /// Evaluates a deleted job again when its pods count no longer.
    fn wait(&self, ctx: &mut Context) {
        let at = self.job.released_at(ctx.now, self.config.gates);
        if let Some(at) = at.filter(|at| *at > ctx.now) {
            ctx.agenda.at(at, Reevaluation::Job(self.key.clone()));
        }
    }

    /// Deletes a job that stays no longer, or waits for that time.
    fn expire(&self, ctx: &mut Context) {
        let Some(retention) = self.config.keeps_deactivated_for else {
            return;
        };
        let workloads = self.workloads().into_iter();
        let ends = workloads.filter_map(|one| retention::expires_at(self.job, one, retention));
        let (Some(at), Some(tracked)) = (ends.min(), self.jobs.get(self.key)) else {
            return;
        };
        if at > ctx.now {
            return ctx.agenda.at(at, Reevaluation::Job(self.key.clone()));
        }
        retention::delete(self.key, tracked, ctx);
    }

    /// Takes the steps. Returns what they mean for Workloads.
    pub(super) fn take(
        &self,
        steps: Vec<ReconcileStep<JobObject>>,
        ctx: &mut Context,
    ) -> Vec<(Key, WorkloadEffect)> {
        self.wait(ctx);
        // A job that is still to be stopped is deleted afterwards.
        if steps.iter().all(is_refusal) {
            self.expire(ctx);
        }
        let gates = self.config.gates;
        let named = self.prebuilt.into_iter().chain(self.owners.owned_by(self.key));
        let known = named.filter_map(|key| self.inputs.workloads.get(key));
        // Of several slices it is the one that ends the run of the job.
        let had = known.min_by_key(|record| (record.is(FINISHED), !record.is(EVICTED)));
        let unit = Unit {
            waiter: Reevaluation::Job(self.key.clone()),
            first: self.job,
            key: self.key,
            had: had.map(|record| &**record.object()),
            // A pod that was started keeps no trace of its start, and a copy names its Workload.
            is_unaccounted: had.is_none()
                && self.removed_by_force.is_none()
                && self.prebuilt.is_none()
                && self.job.as_pod().is_none(),
            priority: &|| priority_source(self.job, gates),
            workload: &|new, priority| {
                let copied = &self.config.keys_to_copy;
                let workload = construct_workload(self.job, priority, copied, gates);
                Some(match new {
                    NewWorkload::Replacement(replaced) => replaced.replaced_by(workload),
                    NewWorkload::Whole | NewWorkload::OfReplica(_) => workload,
                })
            },
        };
        let taker = StepTaker {
            unit,
            jobs: self.jobs,
            inputs: self.inputs,
            gates,
            creates_workloads: self.config.creates_workloads,
        };
        steps.into_iter().filter_map(|step| taker.take(step, ctx)).collect()
    }
}

fn is_refusal(step: &ReconcileStep<JobObject>) -> bool {
    matches!(step, ReconcileStep::Refuse { .. })
}
