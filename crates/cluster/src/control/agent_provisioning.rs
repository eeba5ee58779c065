//! The nodes that an agent asks an autoscaler for, before it admits a clone that fits only with new nodes
//! (docs/reference/dispatch.md §4).
//!
//! The reservation of such a clone has the check `sluice-provisioning`. The machine of provisioning checks takes it from there, with the
//! class of the agent's configuration. A request that fails refuses the clone, so that its manager chooses another cluster; the clone
//! is then evicted, which releases its quota and deletes the request. All of it follows from the present objects.
//!
//! Without a class, or while the cluster does not serve ProvisioningRequests, clones are admitted without the check.

use std::time::Duration;

use ::jobs::admitted_infos::AssignedFlavors;
use crds::{
    meta::is_true,
    names::{
        AGENT_PROVISIONING_CHECK,
        check_states::{PENDING, READY, REJECTED},
        conditions::{EVICTED, QUOTA_RESERVED, REFUSED},
        reasons::PROVISIONING_FAILED,
    },
    v1beta2::{AdmissionCheckState, ProvisioningRequestConfigSpec, Workload},
};
use index::status::find;
use jiff::Timestamp;
use provisioning::{
    CheckUpdate, EntryTemplate, ProvisioningRequest, asks, attempt::is_owned,
    requested_pods::covered,
};
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::{
    context::Context,
    outbox::{Settled, Ticket, after},
    pod_failure::PodFailure,
    provisioning::Provisioning,
    timers::Reevaluation,
    workloads::{WorkloadChange, Workloads},
};

/// How long a request may be without an answer: as long as pods may wait for a node that an autoscaler can add.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The machine that asks an autoscaler for the nodes of clones.
#[derive(Debug)]
pub(super) struct AgentProvisioning {
    /// `None` without a class.
    machine: Option<Provisioning>,
}

impl AgentProvisioning {
    /// An agent that asks with this config, if any.
    pub(super) fn new(config: Option<ProvisioningRequestConfigSpec>) -> Self {
        Self { machine: config.map(Provisioning::of_agent) }
    }

    /// Records a change of requests.
    pub(super) fn observe_requests(
        &mut self,
        change: Change<ProvisioningRequest>,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        self.observe(|machine| machine.observe_requests(change, workloads, ctx));
    }

    /// Records a change of templates.
    pub(super) fn observe_templates(
        &mut self,
        change: Change<EntryTemplate>,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        self.observe(|machine| machine.observe_templates(change, workloads, ctx));
    }

    /// Records a change, and logs whether requests can still be made.
    fn observe(&mut self, record: impl FnOnce(&mut Provisioning)) {
        let Some(machine) = &mut self.machine else { return };
        let before = machine.obstacle();
        record(machine);
        match machine.obstacle() {
            obstacle if obstacle == before => {}
            Some(obstacle) => tracing::warn!(
                ?obstacle,
                "no ProvisioningRequest can be made: clones that need new nodes are admitted without one"
            ),
            None => tracing::info!(
                "clones that need new nodes are admitted after a ProvisioningRequest"
            ),
        }
    }

    /// Takes a change of a clone.
    pub(super) fn workload_changed(&mut self, change: &WorkloadChange) {
        if let Some(machine) = &mut self.machine {
            machine.workload_changed(change);
        }
    }

    /// The check that a new reservation of a clone needs that fits only with new nodes; `None` if no request is made for it.
    pub(super) fn check_for(&self, clone: &Workload) -> Option<&'static str> {
        let config = self.config()?;
        covered(clone, config).next().map(|_| AGENT_PROVISIONING_CHECK)
    }

    /// Adds the check to those that the queue of a clone requires, if the clone has it. One that cannot be asked for any more is left
    /// out, which admits the clone.
    pub(super) fn add_to(
        &self,
        required: Option<Vec<String>>,
        clone: &Workload,
    ) -> Option<Vec<String>> {
        let Some(known) = own_check(clone) else {
            return required;
        };
        // What it added to the pods of a running clone stays.
        let stays = self.config().is_some() || known.state == READY;
        let check = stays.then(|| AGENT_PROVISIONING_CHECK.to_owned());
        Some(required.into_iter().flatten().chain(check).collect())
    }

    /// Takes the next step of a clone towards its nodes. Returns the next state of its check.
    ///
    /// # Errors
    /// With the message of the refusal, if the nodes do not come.
    pub(super) fn evaluate(
        &mut self,
        key: &Key,
        clone: &Workload,
        flavors: AssignedFlavors<'_>,
        ctx: &mut Context,
    ) -> Result<Vec<CheckUpdate>, String> {
        let Some(machine) = &mut self.machine else {
            return Ok(Vec::new());
        };
        let updates = machine.evaluate(key, clone, flavors, ctx);
        // An agent without the kind asks for nothing, so it refuses nothing.
        if machine.config(AGENT_PROVISIONING_CHECK).is_none() {
            return Ok(Vec::new());
        }
        let refused = updates.iter().find_map(refusal);
        match refused.or_else(|| unanswered(machine, key, clone, ctx)) {
            Some(message) => Err(message),
            None => Ok(updates),
        }
    }

    /// The eviction of a clone that was refused for its nodes.
    pub(super) fn eviction(clone: &Workload, now: Timestamp) -> Option<PodFailure> {
        let refused = find(&clone.status.conditions, REFUSED)?;
        let is_own = refused.status == "True" && refused.reason == PROVISIONING_FAILED;
        let message = refused.message.clone();
        is_own.then_some(PodFailure { at: now, reason: PROVISIONING_FAILED, message })
    }

    /// Whether such a clone was evicted and still holds its quota.
    pub(super) fn holds_after_eviction(clone: &Workload, now: Timestamp) -> bool {
        let is = |condition| is_true(&clone.status.conditions, condition);
        Self::eviction(clone, now).is_some() && is(EVICTED) && is(QUOTA_RESERVED)
    }

    /// Takes the mark of checks whose conditions may differ. No check of an agent is an object, so nothing is written.
    pub(super) fn write_conditions(&self, ctx: &mut Context) {
        if let Some(machine) = &self.machine {
            machine.write_conditions(ctx);
        }
    }

    /// Takes the answer to the write of a request or a template.
    pub(super) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        settled: &Settled,
        inputs: (Option<&Workload>, &mut Context),
    ) {
        if let Some(machine) = &mut self.machine {
            machine.answered(ticket, answer, settled, inputs);
        }
    }

    /// The config with which requests are made; `None` while none can be made.
    fn config(&self) -> Option<&ProvisioningRequestConfigSpec> {
        self.machine.as_ref()?.config(AGENT_PROVISIONING_CHECK)
    }
}

fn own_check(clone: &Workload) -> Option<&AdmissionCheckState> {
    clone.status.admission_checks.iter().find(|one| one.name == AGENT_PROVISIONING_CHECK)
}

/// The message about a request that no autoscaler has answered for long: none may serve its class. One that is accepted takes its time.
fn unanswered(
    machine: &Provisioning,
    key: &Key,
    clone: &Workload,
    ctx: &mut Context,
) -> Option<String> {
    own_check(clone).filter(|known| known.state == PENDING && asks(clone))?;
    let requests = machine.requests_of(key);
    let request = requests.iter().find(|one| is_owned(one, clone))?;
    if request.status.conditions.iter().any(|one| one.status == "True") {
        return None;
    }
    let until = after(request.metadata.creation_timestamp.as_ref()?.0, ANSWER_TIMEOUT);
    if until > ctx.now {
        ctx.agenda.at(until, Reevaluation::Workload(key.clone()));
        return None;
    }
    let (name, seconds) = (request.metadata.name.as_deref(), ANSWER_TIMEOUT.as_secs());
    let name = name.unwrap_or_default();
    Some(format!("no autoscaler has answered ProvisioningRequest {name:?} for {seconds}s"))
}

/// The message of a refusal; `None` if the request goes on.
fn refusal(update: &CheckUpdate) -> Option<String> {
    // The request, or one of its templates, cannot be made.
    if update.fails {
        return Some(update.message.clone());
    }
    let message = || format!("the autoscaler provides no nodes: {}", update.message);
    (update.state == REJECTED).then(message)
}
