//! Creates of a Workload's copies, with what identifies them, and the end of those that the hub has no job for.

use ::jobs::{JobObject, remote_objects::RemoteIdentity};
use dispatch::HubIncarnation;
use engine::ids::ClusterId;

use super::{
    evaluation::DispatchEvaluation,
    held_members::is_held,
    state::CreatedObject,
    view::{hub_job_of, is_abandoned, is_deleted_member, jobs_of},
    worker_writes,
};
use crate::control::{job_key::JobKey, timers::Reevaluation};

impl<'a> DispatchEvaluation<'a> {
    pub(super) fn create_clone(&mut self, cluster: ClusterId) {
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return;
        };
        let Some(worker) = self.worker(cluster) else {
            return;
        };
        let workload = record.object();
        let stamp = self.lease_stamp(cluster);
        let mark = self.identity(index::epoch(workload), stamp.as_deref());
        let gated = self.with_clone_gates(workload);
        let clone = (self.key, &*gated);
        // Until an answer or a list settles it, a create counts as something that can run
        // (docs/reference/dispatch.md §6).
        if self.may_create(&(cluster, None))
            && worker_writes::create_clone(worker, clone, (self.inputs.flavors, mark), self.ctx)
        {
            self.state.created((cluster, None), index::epoch(workload), self.ctx.now);
            self.state.sent = true;
        }
    }

    /// What identifies a copy of this epoch.
    pub(super) fn identity<'i>(&self, epoch: u64, lease: Option<&'i str>) -> RemoteIdentity<'i>
    where
        'a: 'i,
    {
        let HubIncarnation { id, term, .. } = *self.hub.0;
        RemoteIdentity { origin: &self.config.origin, epoch, incarnation: id, term, lease }
    }

    /// Deletes the copies of all jobs on a worker.
    pub(super) fn delete_jobs(&mut self, cluster: ClusterId) {
        let Some(worker) = self.worker(cluster) else {
            return;
        };
        let hub = jobs_of(self.key, self.inputs.workloads, self.inputs.jobs);
        let keys = hub.iter().map(|(key, _)| *key);
        let inherited = self.inputs.heirs().inherited(self.key, keys, worker);
        worker_writes::delete_jobs(worker, (self.key, &inherited), |_, _| true, self.ctx);
    }

    /// Creates the copies of jobs that are missing on a worker.
    pub(super) fn create_jobs(&mut self, cluster: ClusterId) {
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return;
        };
        let Some(worker) = self.worker(cluster) else {
            return;
        };
        let workload = (self.key, &**record.object());
        let stamp = self.lease_stamp(cluster);
        let epoch = index::epoch(record.object());
        let mark = self.identity(epoch, stamp.as_deref());
        let jobs = self.inputs.jobs;
        for (key, job) in jobs.dispatched(self.key, record.object()) {
            let object = (cluster, Some(key.clone()));
            // A member that a user deletes does not start any more.
            let deleted = is_deleted_member(job, jobs.gates());
            if deleted || worker.jobs.get(key).is_some() || !self.may_create(&object) {
                continue;
            }
            let requests = jobs.role_requests(self.inputs.scheduler.index());
            if is_held(job, record.object(), requests, jobs.gates()) {
                continue;
            }
            let (job, mark) = ((key, &**job), (mark, jobs.gates()));
            if worker_writes::create_job(worker, workload, job, mark, self.ctx) {
                self.state.created(object, epoch, self.ctx.now);
            }
        }
        self.state.sent = true;
    }

    /// Deletes copies of members that are deleted on the hub, or gone, while their group goes on.
    pub(super) fn delete_members(&mut self, cluster: ClusterId) {
        let Some(worker) = self.worker(cluster) else {
            return;
        };
        let hub = jobs_of(self.key, self.inputs.workloads, self.inputs.jobs);
        let gates = self.inputs.jobs.gates();
        let abandoned =
            |key: &JobKey, copy: &JobObject| is_abandoned(copy, hub_job_of(key, &hub), gates);
        worker_writes::delete_jobs(worker, (self.key, &[]), abandoned, self.ctx);
    }

    /// Whether an object may be created now. What vanished after its create is created again after a pause.
    fn may_create(&mut self, object: &CreatedObject) -> bool {
        let not_before = self.state.create_not_before(object);
        let Some(later) = not_before.filter(|at| *at > self.ctx.now) else {
            return true;
        };
        self.ctx.agenda.at(later, Reevaluation::Workload(self.key.clone()));
        false
    }
}
