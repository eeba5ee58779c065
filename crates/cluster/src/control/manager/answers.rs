//! Answers to writes.

use std::sync::Arc;

use runtime::{watch::Key, writer::WriteOutcome};

use super::ManagerControl;
use crate::control::{
    concurrent_admission::ConcurrentAdmission,
    core::Core,
    outbox::{Purpose, Settled, Ticket, decode},
    workloads::WorkloadChange,
};

impl ManagerControl {
    pub(super) fn workload_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        settled: &Settled,
    ) {
        // A create has no tracked Workload yet that could take its answer.
        if matches!(ticket.purpose, Purpose::WorkloadCreate | Purpose::VariantCreate) {
            return self.workload_created(ticket, answer);
        }
        let ctx = &mut self.core.ctx;
        self.dispatching.workload_answered(ticket, &answer, ctx.now);
        let change = self.core.workloads.answered(ticket, answer, settled, ctx);
        self.after_answer(&ticket.target.key, change.as_ref());
    }

    pub(super) fn check_answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        self.queues.answered(ticket, answer.clone());
        self.provisioning.check_answered(ticket, answer.clone());
        if let Some(check) = self.dispatching.registry.check_answered(ticket, answer) {
            let name = &ticket.target.key.name;
            // The condition that this process wrote makes the check active before the watch reports it.
            self.core.scheduler.update(&mut self.core.ctx.agenda, |index, names| {
                index.admission_check(names, name, Some(&check))
            });
        }
    }

    fn workload_created(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        let Core { jobs, ctx, .. } = &mut self.core;
        match &answer {
            WriteOutcome::Refused { message, .. } if ticket.purpose == Purpose::WorkloadCreate => {
                return jobs.announce_refused_creation(ticket, message, ctx);
            }
            _ => {}
        }
        if let WriteOutcome::Done(value) = answer
            && let Some(workload) = decode(&value)
        {
            if ticket.purpose == Purpose::VariantCreate {
                let event = ConcurrentAdmission::creation(ticket, &self.core);
                event.into_iter().for_each(|event| self.core.ctx.outbox.publish(event));
            } else {
                self.core.jobs.announce_creation(ticket, &mut self.core.ctx);
            }
            self.observe_workload(&ticket.target.key, Some(Arc::new(workload)));
        }
    }

    fn after_answer(&mut self, key: &Key, change: Option<&WorkloadChange>) {
        change.into_iter().for_each(|change| self.route(change));
        let Core { workloads, jobs, ctx, .. } = &mut self.core;
        // Also after a refusal or a conflict: the job may ask for another write now.
        if let Some(record) = workloads.get(key) {
            jobs.evaluate_jobs_of(key, record.object(), ctx);
        }
    }
}
