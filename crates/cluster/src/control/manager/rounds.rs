//! What is decided in a round.

use std::sync::Arc;

use ::jobs::admitted_infos::AssignedFlavors;
use crds::meta::is_rebuilding;
use runtime::watch::Key;
use variants::VariantAdmission;

use super::ManagerControl;
use crate::control::{
    core::{Core, JobEnvironment},
    multikueue::multikueue_check,
    topology::KeyedWorkload,
    workloads::StatusInputs,
};

impl ManagerControl {
    pub(super) fn evaluate_jobs(&mut self) -> usize {
        let Self { core, selection, configuration, queues, .. } = self;
        let environment = JobEnvironment {
            flavors: AssignedFlavors::Own(queues.flavors()),
            priority: &|source| configuration.priority(source),
            managed: &|key, job, ancestor| selection.selects(key, job, ancestor, configuration),
        };
        core.evaluate_jobs(&environment)
    }

    pub(super) fn evaluate_workloads(&mut self) -> usize {
        let keys = self.core.take_workloads();
        for key in &keys {
            if self.core.workloads.get(key).is_some_and(|one| is_rebuilding(&one.object().metadata))
            {
                self.core.workloads.release_deleted(key, &mut self.core.ctx);
                continue;
            }
            if let Some(change) = self.core.ended_backoff(key) {
                self.route(&change);
                // `route` has put the Workload on the agenda again, and it is evaluated below.
                self.core.ctx.agenda.withdraw_workload(key);
            }
            let variant = self.concurrent_admission.evaluate(key, &mut self.core);
            // Copies first: their transitions go out in the status write that follows.
            self.dispatching.evaluate_copies(key, &mut self.core, &self.queues);
            if self.core.prepare_workload(key, &mut self.dispatching.fleet) {
                self.evaluate_workload(key, variant);
            }
        }
        let Core { workloads, scheduler, .. } = &self.core;
        self.pods.topology.reservations_may_differ(&keys, workloads, scheduler);
        keys.len()
    }

    fn evaluate_workload(&mut self, key: &Key, variant: Option<Box<VariantAdmission>>) {
        let Some(record) = self.core.workloads.get(key) else {
            return;
        };
        let workload = Arc::clone(record.object());
        let flavors = AssignedFlavors::Own(self.queues.flavors());
        // What a parent shows is its variant's: the nodes and the checks of that are evaluated.
        let (unhealthy_nodes, check_updates) = if self.core.is_parent(&workload) {
            (None, Vec::new())
        } else {
            let ctx = &mut self.core.ctx;
            let workloads = &self.core.workloads;
            let keyed = KeyedWorkload { key, workload: &workload };
            let failed = self.pods.topology.failed_nodes(keyed, workloads, flavors, ctx);
            (failed, self.provisioning.evaluate(key, &workload, flavors, ctx))
        };
        let inputs = StatusInputs {
            variant,
            check_updates,
            unhealthy_nodes,
            stop: self.queues.stop_policy(key, &workload),
            multikueue_check: multikueue_check(record, &self.core.scheduler),
            required_checks: self.core.scheduler.required_checks(&workload),
            withdrawn: self.dispatching.is_withdrawn(key),
            class_priority: self.configuration.class_priority(&workload),
            pod_starts: self.dispatching.pod_starts(key, &workload),
            ..StatusInputs::default()
        };
        // The queues have counted the reservation that the engine takes back. No change of an object marks them.
        if self.core.evaluate_workload(key, inputs, &mut self.dispatching.fleet) {
            self.queues.mark(key, &workload, &mut self.core.ctx.agenda);
        }
    }
}
