//! Creates of a Workload's copies on a worker, with what identifies them, and the end of those that the hub has no job for.

use crds::v1beta2::Workload;

use jiff::Timestamp;

use super::{
    held_members::is_held,
    sent_copies::{CreatedObject, SentCopies},
    worker_writes::{self, CopySource},
};
use crate::control::{
    context::Context,
    multikueue::{
        view::{
            evaluated_workload::EvaluatedWorkload,
            hub_jobs::{hub_job_of, is_abandoned, is_deleted_member},
        },
        workers::worker::Worker,
    },
    timers::Reevaluation,
};

/// The copies of one Workload on one worker.
pub(crate) struct WorkerCopies<'e> {
    pub(crate) workload: EvaluatedWorkload<'e>,
    pub(crate) worker: &'e Worker,
    pub(crate) sent: &'e mut SentCopies,
    /// Until when the worker gets no copy in a race, as one that has removed or changed others.
    pub(crate) paused_until: Option<Timestamp>,
    pub(crate) ctx: &'e mut Context,
}

impl WorkerCopies<'_> {
    /// Creates the clone. `gated` is the Workload with its preemption gates there, `lease` session and term under ExactlyOnce.
    pub(crate) fn create_clone(&mut self, gated: &Workload, lease: Option<&str>) {
        let epoch = index::epoch(gated);
        let EvaluatedWorkload { key, jobs, flavors, .. } = self.workload;
        let mark = self.workload.identity(epoch, lease);
        let source = CopySource { key, workload: gated, mark, gates: jobs.gates() };
        let object = (self.worker.id, None);
        // Until an answer or a list settles it, a create counts as something that can run
        // (docs/reference/dispatch.md §6).
        if self.may_create(&object)
            && worker_writes::create_clone(self.worker, source, flavors, self.ctx)
        {
            self.sent.created(object, epoch, self.ctx.now);
            self.sent.clone_created(self.worker.id, gated.metadata.generation);
            self.sent.any = true;
        }
    }

    /// Creates the copies of jobs that are missing.
    pub(crate) fn create_jobs(&mut self, lease: Option<&str>) {
        let Some(record) = self.workload.record() else {
            return;
        };
        let epoch = index::epoch(record.object());
        let mark = self.workload.identity(epoch, lease);
        let EvaluatedWorkload { key: workload, jobs, .. } = self.workload;
        let source =
            CopySource { key: workload, workload: record.object(), mark, gates: jobs.gates() };
        for (key, job) in jobs.dispatched(workload, record.object()) {
            let object = (self.worker.id, Some(key.clone()));
            // A member that a user deletes does not start any more.
            let deleted = is_deleted_member(job, jobs.gates());
            if deleted || self.worker.jobs.get(key).is_some() || !self.may_create(&object) {
                continue;
            }
            let requests = jobs.role_requests(self.workload.scheduler.index());
            if is_held(job, record.object(), requests, jobs.gates()) {
                continue;
            }
            if worker_writes::create_job(self.worker, source, (key, job), self.ctx) {
                self.sent.created(object, epoch, self.ctx.now);
            }
        }
        self.sent.any = true;
    }

    /// Deletes the copies of all jobs.
    pub(crate) fn delete_jobs(&mut self) {
        let (key, hub) = (self.workload.key, self.workload.hub_jobs());
        let keys = hub.iter().map(|(key, _)| *key);
        let inherited = self.workload.heirs().inherited(key, keys, self.worker);
        let jobs = self.worker.jobs_of(key).chain(inherited);
        worker_writes::delete_jobs(self.worker, key, jobs, self.ctx);
    }

    /// Deletes copies of members that are deleted on the hub, or gone, while their group goes on.
    pub(crate) fn delete_members(&mut self) {
        let (hub, gates) = (self.workload.hub_jobs(), self.workload.jobs.gates());
        let key = self.workload.key;
        let copies = self.worker.jobs(key);
        let abandoned =
            copies.filter(|(job, copy)| is_abandoned(copy, hub_job_of(job, &hub), gates));
        worker_writes::delete_jobs(self.worker, key, abandoned.map(|(job, _)| job), self.ctx);
    }

    /// Whether an object may be created now. What vanished after its create is created again after a pause.
    fn may_create(&mut self, object: &CreatedObject) -> bool {
        let races = self.workload.config.dispatcher.races();
        let pauses = [self.sent.create_not_before(object), self.paused_until.filter(|_| races)];
        let not_before = pauses.into_iter().flatten().max();
        let Some(later) = not_before.filter(|at| *at > self.ctx.now) else {
            return true;
        };
        self.ctx.agenda.at(later, Reevaluation::Workload(self.workload.key.clone()));
        false
    }
}
