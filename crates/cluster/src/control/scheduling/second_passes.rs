//! Second passes: topology assignments of Workloads that hold quota already (docs/reference/kueue.md §3.7).

use crds::names::{reasons, reporters};
use engine::{SecondPass, explain};
use index::status::settled_topologies;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

use super::{cycle::SchedulingCycles, verdict::VerdictInputs};
use crate::control::{
    context::Context,
    outbox::after,
    time::{engine_time, timestamp},
    timers::Reevaluation,
    workloads::{Transition, Workloads},
};

impl SchedulingCycles<'_> {
    /// Makes the second passes that are due. Returns whether a Workload got its topology assignment, or targets are evicted.
    pub(super) fn second_passes(&mut self, workloads: &mut Workloads, ctx: &mut Context) -> bool {
        let now = engine_time(ctx.now);
        let mut progress = false;
        for pass in self.engine.second_pass(now) {
            progress |= self.take_pass(&pass, workloads, ctx);
        }
        // The delay after a failure may be over.
        *self.pending |= self.engine.has_node_to_replace();
        if let Some(at) = self.engine.next_second_pass(now) {
            ctx.agenda.at(timestamp(at), Reevaluation::Fleet);
        }
        progress
    }

    fn take_pass(&self, pass: &SecondPass, workloads: &mut Workloads, ctx: &mut Context) -> bool {
        let Some(key) = workloads.by_id(pass.workload).map(|(key, _)| key.clone()) else {
            return false;
        };
        let pod_sets = match &pass.outcome {
            Ok(pod_sets) => pod_sets,
            Err(found) => {
                let message = explain::reason_messages(self.engine, found).join(", ");
                report(&key, workloads, message, ctx);
                return self.preempt(pass, workloads, ctx);
            }
        };
        let topologies = settled_topologies(self.engine, pod_sets);
        workloads.propose(&key, Transition::AssignTopology(topologies), ctx);
        true
    }

    /// Evicts what a second pass needs to be gone. Returns whether there is any such Workload.
    fn preempt(&self, pass: &SecondPass, workloads: &mut Workloads, ctx: &mut Context) -> bool {
        let evictions = VerdictInputs {
            engine: self.engine,
            index: self.index,
            fleet: self.fleet,
            workloads,
            not_before: after(ctx.now, self.explain_after),
        }
        .preemptions(pass.workload, pass.queue, &pass.targets);
        let any = !evictions.is_empty();
        for (target, eviction) in evictions {
            workloads.evict(target, eviction, ctx);
        }
        any
    }
}

/// Reports that a Workload got no topology assignment.
pub(super) fn report(key: &Key, workloads: &Workloads, note: String, ctx: &mut Context) {
    let Some(record) = workloads.get(key) else {
        return;
    };
    let reason = reasons::SECOND_PASS_FAILED.to_owned();
    ctx.outbox.publish(EventRecord {
        regarding: Regarding::of(&**record.object()),
        event_type: EventType::Warning,
        action: reason.clone(),
        reason,
        note,
        controller: Some(reporters::SCHEDULER.to_owned()),
    });
}
