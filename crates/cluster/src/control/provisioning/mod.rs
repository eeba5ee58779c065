//! Provisioning checks: which ProvisioningRequests exist, what Workloads ask next, and the states of their checks
//! (docs/reference/kueue.md §2.3).
//!
//! Inputs: AdmissionChecks, ProvisioningRequestConfigs, ProvisioningRequests, PodTemplates, Workloads as they are evaluated.
//! Outputs: the next states of checks, which go out with the status of the Workload; writes of requests and templates; conditions
//! `Active`. What follows is decided by the crate `provisioning`. Nothing is remembered over a restart. An agent runs it for one
//! check that is no object.
//!
//! | file | concept |
//! |---|---|
//! | `checks` | AdmissionChecks and their configs, and whether they are usable |
//! | `asked_objects` | requests and templates, and the Workloads that they concern |
//! | `evaluation` | what a Workload asks next |
//! | `writes` | requests and templates as writes, and their answers |

mod asked_objects;
mod checks;
mod evaluation;
mod writes;

use std::{collections::BTreeMap, sync::Arc};

use ::provisioning::{EntryTemplate, ProvisioningRequest, active::Obstacle};
use crds::v1beta2::{
    AdmissionCheck, ProvisioningRequestConfig, ProvisioningRequestConfigSpec,
    ProvisioningRequestRetryStrategy,
};
use runtime::{
    watch::{Change, Key, Unavailable},
    writer::WriteOutcome,
};

use self::{asked_objects::AskedObjects, checks::ProvisioningChecks};
use super::{
    change::for_each_object,
    context::Context,
    key_map::KeyMap,
    outbox::Ticket,
    timers::{Agenda, Reevaluation},
    workloads::{WorkloadChange, Workloads},
};

/// The resource of requests, in messages.
const REQUESTS: &str = "provisioningrequests.autoscaling.x-k8s.io/v1";

/// The resource of templates, in messages.
const TEMPLATES: &str = "podtemplates";

/// The checks, the ProvisioningRequests and the templates, as they were observed.
#[derive(Debug)]
pub(crate) struct Provisioning {
    /// Requests of evicted Workloads are deleted (gate CleanupProvisioningRequestsOnEviction).
    cleans_up_evicted: bool,
    checks: ProvisioningChecks,
    requests: AskedObjects<ProvisioningRequest>,
    templates: AskedObjects<EntryTemplate>,
    /// Why objects could not be created, by Workload and name of the object.
    refusals: KeyMap<Key, BTreeMap<Box<str>, String>>,
}

impl Provisioning {
    pub(crate) fn new(cleans_up_evicted: bool) -> Self {
        Self::of(ProvisioningChecks::default(), cleans_up_evicted)
    }

    /// The machine of an agent. Its only check is no object of the cluster. An attempt that fails is not repeated: the manager tries
    /// another cluster.
    pub(crate) fn of_agent(config: ProvisioningRequestConfigSpec) -> Self {
        let once = ProvisioningRequestRetryStrategy {
            backoff_limit_count: Some(0),
            ..ProvisioningRequestRetryStrategy::default()
        };
        let config = ProvisioningRequestConfigSpec { retry_strategy: Some(once), ..config };
        Self::of(ProvisioningChecks::of_agent(config), true)
    }

    fn of(checks: ProvisioningChecks, cleans_up_evicted: bool) -> Self {
        Self {
            cleans_up_evicted,
            checks,
            requests: AskedObjects::default(),
            templates: AskedObjects::default(),
            refusals: KeyMap::default(),
        }
    }

    /// Records an AdmissionCheck; `None` if it is gone. Its Workloads are evaluated with every check.
    pub(crate) fn observe_check(
        &mut self,
        name: &str,
        object: Option<Arc<AdmissionCheck>>,
        agenda: &mut Agenda,
    ) {
        if self.checks.observe(name, object) {
            agenda.now(Reevaluation::ProvisioningChecks);
        }
    }

    /// Records a config; `None` if it is gone.
    pub(crate) fn observe_config(
        &mut self,
        name: &str,
        object: Option<Arc<ProvisioningRequestConfig>>,
        workloads: &Workloads,
        agenda: &mut Agenda,
    ) {
        self.checks.observe_config(name, object);
        self.evaluate_all(workloads, agenda);
    }

    /// Records a change of requests.
    pub(crate) fn observe_requests(
        &mut self,
        change: Change<ProvisioningRequest>,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        if self.checks.requests_observable(obstacle(&change, REQUESTS)) {
            self.evaluate_all(workloads, &mut ctx.agenda);
        }
        for_each_object(change, |key, object| {
            ctx.agenda.workloads(self.requests.observe(&key, object));
        });
    }

    /// Records a change of templates.
    pub(crate) fn observe_templates(
        &mut self,
        change: Change<EntryTemplate>,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        if self.checks.templates_observable(obstacle(&change, TEMPLATES)) {
            self.evaluate_all(workloads, &mut ctx.agenda);
        }
        for_each_object(change, |key, object| {
            ctx.agenda.workloads(self.templates.observe(&key, object));
        });
    }

    /// The config of a check; `None` while the check is not usable.
    pub(crate) fn config(&self, check: &str) -> Option<&ProvisioningRequestConfigSpec> {
        self.checks.config(check)
    }

    /// The requests that a Workload controls. One of the same name may have controlled them before.
    pub(crate) fn requests_of(&self, workload: &Key) -> Vec<Arc<ProvisioningRequest>> {
        self.requests.of_workload(workload)
    }

    /// Why no request can be made.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        self.checks.obstacle()
    }

    /// Takes a change of a Workload.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange) {
        if change.after.is_none() {
            self.refusals.remove(&change.key);
        }
    }

    /// Writes conditions `Active` that differ.
    pub(crate) fn write_conditions(&self, ctx: &mut Context) {
        if ctx.agenda.take_provisioning_checks() {
            self.checks.write_conditions(ctx);
        }
    }

    /// Takes the answer to a write of an AdmissionCheck.
    pub(crate) fn check_answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        self.checks.answered(&ticket.target.key.name, answer);
    }

    /// Evaluates the checks, and every Workload that has one of them.
    fn evaluate_all(&self, workloads: &Workloads, agenda: &mut Agenda) {
        agenda.now(Reevaluation::ProvisioningChecks);
        let asks = |workload: &crds::v1beta2::Workload| {
            let mut checks = workload.status.admission_checks.iter();
            checks.any(|one| self.checks.is_provisioning(&one.name))
        };
        agenda.workloads(workloads.select(asks));
    }
}

/// What a change says about the whole kind: whether it can be observed; `None` if it says nothing.
fn obstacle<K>(change: &Change<K>, resource: &'static str) -> Option<Option<Obstacle>> {
    match change {
        Change::Reset { .. } => Some(None),
        Change::Unavailable { reason: Unavailable::NotServed, .. } => {
            Some(Some(Obstacle::NotServed(resource)))
        }
        Change::Unavailable { reason: Unavailable::Forbidden, .. } => {
            Some(Some(Obstacle::Forbidden(resource)))
        }
        Change::Apply(_) | Change::Delete(_) => None,
    }
}
