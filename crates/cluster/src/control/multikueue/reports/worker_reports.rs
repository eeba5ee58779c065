//! What a worker reports beside copies: its capacity, and the Leases by which ExactlyOnce fences it.

use dispatch::Fleet;
use k8s_openapi::api::coordination::v1::Lease;
use runtime::{watch::Change, writer::WriteOutcome};

use crate::control::{
    context::Context,
    fleet::FleetRegistry,
    lease_objects::hub_lease,
    multikueue::{
        MultiKueueDispatch,
        leases::grants::{LeaseContext, LeaseSettings},
    },
    outbox::Ticket,
    timers::NamesToEvaluate,
    workloads::Workloads,
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
        registry: &FleetRegistry,
        fleet: &mut Fleet,
        ctx: &mut Context,
    ) {
        self.workers.age_reports(clusters, registry, fleet, ctx);
    }

    /// Writes copies of reports that differ from what the hub shows.
    pub(crate) fn write_report_copies(&mut self, registry: &FleetRegistry, ctx: &mut Context) {
        self.workers.write_report_copies(registry, ctx);
    }

    /// Records a change of the Leases of a worker.
    pub(crate) fn leases_changed(&mut self, name: &str, change: Change<Lease>, ctx: &mut Context) {
        let own = hub_lease(&self.config.namespace, &self.config.origin);
        self.grants.observe(name, change, &own, ctx);
    }

    /// Takes the answer to a write of a worker's Lease.
    pub(crate) fn lease_answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        if let Some(name) = ticket.target.to.worker() {
            self.grants.answered(name, ticket.purpose, answer);
        }
    }

    /// Decides about the leases of workers. Returns the workers of which they have changed.
    pub(crate) fn keep_leases(
        &mut self,
        registry: &mut FleetRegistry,
        fleet: &mut Fleet,
        workloads: &Workloads,
        ctx: &mut Context,
    ) -> Vec<Box<str>> {
        let Self { config, workers, incarnation, grants, .. } = self;
        // Before the term is written this process does nothing on a worker.
        let Some(term) = incarnation.present().map(|present| present.term) else {
            return Vec::new();
        };
        let settings = LeaseSettings {
            origin: &config.origin,
            namespace: &config.namespace,
            lost_after: config.timeouts(None).worker_lost_timeout,
            term,
        };
        let now = ctx.now;
        let lost_since = |name: &str, lost_after: i64| workers.lost_since(name, lost_after, now);
        let inputs = LeaseContext { settings, workloads, registry, fleet };
        grants.evaluate(inputs, lost_since, ctx)
    }
}
