//! What dispatch does about the reports of workers: their age, and their copies on the hub.

use runtime::writer::WriteOutcome;

use super::MultiKueueDispatch;
use crate::control::{
    context::Context, fleet::FleetRegistry, outbox::Ticket, timers::NamesToEvaluate,
};

impl MultiKueueDispatch {
    /// Takes the answer to a write of a report's copy on the hub.
    pub(crate) fn report_copy_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        ctx: &mut Context,
    ) {
        self.workers.report_copy_answered(ticket, answer, ctx);
    }

    /// Leaves out clusters with reports that have no heartbeat any more.
    pub(crate) fn age_reports(
        &self,
        clusters: &NamesToEvaluate,
        registry: &mut FleetRegistry,
        ctx: &mut Context,
    ) {
        self.workers.age_reports(clusters, registry, ctx);
    }

    /// Writes copies of reports that differ from what the hub shows.
    pub(crate) fn write_report_copies(&mut self, registry: &FleetRegistry, ctx: &mut Context) {
        self.workers.write_report_copies(registry, ctx);
    }
}
