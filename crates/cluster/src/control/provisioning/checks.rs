//! AdmissionChecks of the provisioning controller, their configs, and the condition `Active`.

use std::sync::Arc;

use ::provisioning::active::{CheckActivity, Obstacle, activity, config_name};
use crds::{
    names::{AGENT_PROVISIONING_CHECK, PROVISIONING_CONTROLLER, conditions::ACTIVE},
    v1beta2::{
        AdmissionCheck, AdmissionCheckStatus, ProvisioningRequestConfig,
        ProvisioningRequestConfigSpec,
    },
};
use index::status::StatusStamp;
use runtime::{watch::Key, writer::WriteOutcome};

use crate::control::{
    context::Context,
    key_map::KeyMap,
    outbox::{Intent, Purpose, Subject, Target, Tracked, upsert},
    timers::Reevaluation,
};

/// The AdmissionChecks of the provisioning controller.
#[derive(Debug, Default)]
pub(super) struct ProvisioningChecks {
    /// Those of this controller.
    checks: KeyMap<Box<str>, Tracked<AdmissionCheck>>,
    configs: KeyMap<Box<str>, Arc<ProvisioningRequestConfig>>,
    /// The config of an agent, for a check that is no object.
    of_agent: Option<ProvisioningRequestConfigSpec>,
    /// Why requests cannot be observed.
    requests: Option<Obstacle>,
    /// Why templates cannot be observed.
    templates: Option<Obstacle>,
}

impl ProvisioningChecks {
    /// The only check of an agent.
    pub(super) fn of_agent(config: ProvisioningRequestConfigSpec) -> Self {
        Self { of_agent: Some(config), ..Self::default() }
    }

    /// Records an AdmissionCheck; `None` if it is gone. Returns whether the controller is this one.
    pub(super) fn observe(&mut self, name: &str, object: Option<Arc<AdmissionCheck>>) -> bool {
        let ours = |one: &Arc<AdmissionCheck>| one.spec.controller_name == PROVISIONING_CONTROLLER;
        let object = object.filter(ours);
        let concerned = object.is_some();
        upsert(&mut self.checks, name.into(), object);
        concerned
    }

    /// Records a config; `None` if it is gone.
    pub(super) fn observe_config(
        &mut self,
        name: &str,
        object: Option<Arc<ProvisioningRequestConfig>>,
    ) {
        match object {
            Some(object) => self.configs.insert(name.into(), object),
            None => self.configs.remove(name),
        };
    }

    /// Records whether requests can be observed. Returns whether that changed.
    pub(super) fn requests_observable(&mut self, obstacle: Option<Option<Obstacle>>) -> bool {
        replaced(&mut self.requests, obstacle)
    }

    /// Records whether templates can be observed. Returns whether that changed.
    pub(super) fn templates_observable(&mut self, obstacle: Option<Option<Obstacle>>) -> bool {
        replaced(&mut self.templates, obstacle)
    }

    /// Whether a check is one of this controller.
    pub(super) fn is_provisioning(&self, check: &str) -> bool {
        self.agent_config(check).is_some() || self.checks.contains_key(check)
    }

    fn agent_config(&self, check: &str) -> Option<&ProvisioningRequestConfigSpec> {
        self.of_agent.as_ref().filter(|_| check == AGENT_PROVISIONING_CHECK)
    }

    /// The config of a check; `None` while the check is not usable.
    pub(super) fn config(&self, check: &str) -> Option<&ProvisioningRequestConfigSpec> {
        if self.obstacle().is_some() {
            return None;
        }
        if let Some(config) = self.agent_config(check) {
            return Some(config);
        }
        let parameters = self.checks.get(check)?.object().spec.parameters.as_ref();
        self.configs.get(config_name(parameters).ok()?).map(|config| &config.spec)
    }

    /// Writes conditions that differ.
    pub(super) fn write_conditions(&self, ctx: &mut Context) {
        for (name, tracked) in &self.checks {
            let key = Key { namespace: None, name: (**name).into() };
            let (target, base) = (Target::home(Subject::AdmissionCheck, &key), tracked.stamp());
            let waiter = Reevaluation::ProvisioningChecks;
            if !ctx.free_or_wait(&target, &base, &waiter) {
                continue;
            }
            let (before, after) = (&tracked.object().status, self.status(tracked.object(), ctx));
            let intent = Intent { target, purpose: Purpose::CheckCondition, base, waiter };
            ctx.outbox.submit_status::<AdmissionCheck, _>(intent, before, &after);
        }
    }

    /// Takes the answer to a write of a check.
    pub(super) fn answered(&mut self, name: &str, answer: WriteOutcome) {
        if let (Some(tracked), WriteOutcome::Done(value)) = (self.checks.get_mut(name), answer) {
            tracked.observe_answer(&value);
        }
    }

    fn status(&self, check: &AdmissionCheck, ctx: &Context) -> AdmissionCheckStatus {
        let is_config = |name: &str| self.configs.contains_key(name);
        let parameters = check.spec.parameters.as_ref();
        let CheckActivity { active, reason, message } =
            activity(parameters, is_config, self.obstacle());
        let generation = check.metadata.generation.unwrap_or_default();
        let mut conditions = check.status.conditions.clone();
        let at = StatusStamp { now: ctx.now, generation };
        index::status::set_for_generation(
            &mut conditions,
            index::status::NewCondition { kind: ACTIVE, status: active, reason, message: &message },
            at,
        );
        AdmissionCheckStatus { conditions }
    }

    /// Why no request can be made.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        self.requests.or(self.templates)
    }
}

/// Sets what was observed. Returns whether it differs.
fn replaced(known: &mut Option<Obstacle>, observed: Option<Option<Obstacle>>) -> bool {
    observed.is_some_and(|observed| std::mem::replace(known, observed) != observed)
}
