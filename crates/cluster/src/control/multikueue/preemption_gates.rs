//! Preemption gates of clones (docs/reference/multikueue.md §2.5, §2.6): which a clone is created with, and their opening. The decision is
//! `dispatch::workload`.

use std::{borrow::Cow, sync::Arc};

use crds::{
    names::gates::MULTI_KUEUE,
    v1beta2::{PreemptionGate, Workload},
};
use engine::ids::ClusterId;
use index::status::{self, StatusStamp};
use variants::preemption_gate::PREEMPTION_TIMEOUT;

use super::{DispatchConfig, evaluation::DispatchEvaluation, worker::Worker, worker_writes};
use crate::control::{outbox::Subject, time::nanos};

impl DispatchConfig {
    /// Time between two openings, in nanoseconds: as between variants. 0 without the gate, which opens what is closed.
    pub(super) fn preemption_timeout(&self) -> i64 {
        if self.orders_preemption { nanos(PREEMPTION_TIMEOUT) } else { 0 }
    }
}

impl DispatchEvaluation<'_> {
    /// The Workload with the preemption gates that its clones are created with: those of manager and worker are independent of each other.
    /// A replica that follows others has no other cluster to leave the preemption to.
    pub(super) fn with_clone_gates<'w>(&self, workload: &'w Arc<Workload>) -> Cow<'w, Workload> {
        if !self.config.orders_preemption {
            return Cow::Borrowed(workload);
        }
        let gated = !self.inputs.siblings(self.key).follow();
        let gate = gated.then(|| PreemptionGate { name: MULTI_KUEUE.to_owned() });
        let mut workload = Workload::clone(workload);
        workload.spec.preemption_gates = gate.into_iter().collect();
        Cow::Owned(workload)
    }

    /// Opens the preemption gate of the clone on a worker. An opening without an answer counts as one, so another clone waits for it.
    pub(super) fn open_preemption_gate(&mut self, cluster: ClusterId) {
        let writes = self.ctx.outbox.writes();
        let mut others = self.workers.iter().filter(|(_, one)| one.id != cluster);
        let is_written =
            |one: &Worker| writes.is_in_flight(&one.target(Subject::Workload, self.key));
        if others.any(|(_, one)| is_written(one)) {
            return;
        }
        let Some(worker) = self.worker(cluster) else {
            return;
        };
        if let Some(clone) = worker.clones.get(self.key) {
            let status = clone.object().status.clone();
            let generation = clone.object().metadata.generation.unwrap_or_default();
            let at = StatusStamp { now: self.ctx.now, generation };
            let after = status::with_open_gate(status, MULTI_KUEUE, at);
            worker_writes::write_gates(worker, self.key, &after.preemption_gates, self.ctx);
        }
    }
}
