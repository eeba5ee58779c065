//! Changes of Workloads, on their way to every machine.

use std::sync::Arc;

use crds::v1beta2::Workload;
use index::{AffectedWorkloads, Index};
use runtime::watch::Key;

use super::ManagerControl;
use crate::control::{core::Core, workloads::WorkloadChange};

impl ManagerControl {
    /// Records a Workload; `None` if it is gone.
    pub(super) fn observe_workload(&mut self, key: &Key, object: Option<Arc<Workload>>) {
        let Some(object) = object else {
            let removed = self.core.workloads.remove(key);
            return removed.iter().for_each(|change| self.route(change));
        };
        // A list may show the successor without the deletion. Transitions, usage and copies of the predecessor are not
        // its own.
        if self.core.workloads.is_replaced_by(key, &object) {
            self.observe_workload(key, None);
        }
        let new = self.core.workloads.get(key).is_none();
        let scheduler = &mut self.core.scheduler;
        let change = self.core.workloads.observe(key, object, || scheduler.intern(key));
        change.iter().for_each(|change| self.route(change));
        // A Workload that is new here and holds quota was placed by an earlier process, and takes room already.
        if new {
            self.dispatching.recover_placement(key, &self.core, &self.queues);
        }
    }

    /// Routes a change of a Workload to every machine.
    pub(super) fn route(&mut self, change: &WorkloadChange) {
        // The new spec may need other room, so the next cycle places it again.
        if let Some(id) = change.id.filter(|_| change.voids_reservation) {
            self.dispatching.fleet.unplace(id);
        }
        self.dispatching.learn_run_time(change);
        if let Some(id) = self.core.workload_changed(change) {
            self.dispatching.end_placement(&change.key, id);
        }
        self.queues.workload_changed(change, &mut self.core.ctx.agenda);
        self.concurrent_admission.workload_changed(change, &mut self.core.ctx.agenda);
        let newest = change.after.as_ref().or(change.before.as_ref());
        if newest.is_some_and(|workload| self.core.is_parent(workload)) {
            self.numbers.parent_changed(change, &self.queues, &mut self.core.ctx);
        } else {
            self.numbers.workload_changed(change, &self.queues, &mut self.core.ctx);
        }
        self.dispatching.workload_changed(change, &mut self.core);
        self.pods.workload_changed(change, &mut self.core.ctx);
        self.provisioning.workload_changed(change);
    }

    /// Enters Workloads again after a change of how their requests are read.
    pub(super) fn reenter(&mut self, read: impl FnOnce(&mut Index) -> AffectedWorkloads) {
        let affected = self.core.scheduler.update_defaults(read);
        let changes = self.core.workloads.reenter_affected(&affected);
        changes.iter().for_each(|change| self.route(change));
        if affected != AffectedWorkloads::None {
            let Core { jobs, ctx, .. } = &mut self.core;
            jobs.evaluate_held_members(ctx);
        }
    }
}
