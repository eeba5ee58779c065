//! The queues of an agent that admits by quota: ClusterQueues and what they refer to, as the administrator of the worker made
//! them (docs/reference/dispatch.md §4).
//!
//! Topologies are not observed. A ClusterQueue with a flavor of a Topology is inactive, and its status says so.

use std::{borrow::Cow, sync::Arc};

use ::jobs::admitted_infos::AssignedFlavors;
use crds::v1beta2::Workload;
use index::{AdmissionMode, AffectedWorkloads, Index};
use kube::Resource;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::{
    change::for_each_object,
    context::Context,
    core::Core,
    input::QueueInput,
    manager_settings::QUEUE_STATUS_PERIOD,
    outbox::Ticket,
    queue_objects::QueueObjects,
    queues::Queues,
    scheduling::Scheduler,
    workloads::{StatusInputs, WorkloadChange},
};

/// The queues of an agent that admits by quota. Without queues, in mode Thin, it observes nothing and adds nothing.
#[derive(Debug)]
pub(super) struct AgentQueues {
    queues: Option<Queues>,
}

impl AgentQueues {
    pub(super) fn new(mode: AdmissionMode) -> Self {
        Self { queues: (mode == AdmissionMode::Quota).then(|| Queues::new(QUEUE_STATUS_PERIOD)) }
    }

    /// Whether clones are admitted by quota.
    pub(super) fn are_used(&self) -> bool {
        self.queues.is_some()
    }

    /// Records a change of one kind. Returns the kind if all of its objects were listed, and the Workloads with requests that are
    /// read differently now.
    pub(super) fn observe(
        &mut self,
        input: QueueInput,
        core: &mut Core,
    ) -> (Option<Cow<'static, str>>, AffectedWorkloads) {
        let Some(queues) = &mut self.queues else {
            return (None, AffectedWorkloads::None);
        };
        let mut objects = QueueObjects { queues, core };
        let listed = match input {
            QueueInput::Namespace(change) => each(change, |key, namespace| {
                objects.namespace(key, namespace.as_deref());
            }),
            QueueInput::ResourceFlavor(change) => each(change, |key, flavor| {
                objects.resource_flavor(key, flavor);
            }),
            QueueInput::Cohort(change) => each(change, |key, cohort| {
                objects.cohort(key, cohort);
            }),
            QueueInput::AdmissionCheck(change) => each(change, |key, check| {
                objects.admission_check(key, check.as_deref());
                objects.queues.observe_check(&key.name, check, &mut objects.core.ctx.agenda);
            }),
            QueueInput::ClusterQueue(change) => each(change, |key, queue| {
                objects.cluster_queue(key, queue);
            }),
            QueueInput::LocalQueue(change) => each(change, |key, queue| {
                objects.local_queue(key, queue);
            }),
        };
        (listed, core.scheduler.update_defaults(Index::take_workloads_to_reenter))
    }

    /// Where node labels and tolerations of pods come from.
    pub(super) fn flavors(&self) -> AssignedFlavors<'_> {
        match &self.queues {
            Some(queues) => AssignedFlavors::OwnOnNodes(queues.flavors()),
            None => AssignedFlavors::Carried,
        }
    }

    /// Marks the queues that count a clone.
    pub(super) fn workload_changed(&self, change: &WorkloadChange, ctx: &mut Context) {
        if let Some(queues) = &self.queues {
            queues.workload_changed(change, &mut ctx.agenda);
        }
    }

    /// Adds what queues decide about the status of a clone.
    pub(super) fn add_to(
        &self,
        inputs: StatusInputs,
        key: &Key,
        clone: &Workload,
        scheduler: &Scheduler,
    ) -> StatusInputs {
        let Some(queues) = &self.queues else {
            return inputs;
        };
        let stop = queues.stop_policy(key, clone);
        StatusInputs { stop, required_checks: scheduler.required_checks(clone), ..inputs }
    }

    /// The engine took the reservation of a clone back.
    pub(super) fn reservation_withdrawn(&self, key: &Key, clone: &Workload, ctx: &mut Context) {
        if let Some(queues) = &self.queues {
            queues.mark(key, clone, &mut ctx.agenda);
        }
    }

    /// Writes statuses of queues, and the finalizers that follow.
    pub(super) fn evaluate(&mut self, scheduler: &Scheduler, ctx: &mut Context) {
        match &mut self.queues {
            Some(queues) => queues.evaluate(scheduler, ctx),
            // No status of a queue is in the API.
            None => drop(ctx.agenda.take_queues()),
        }
    }

    /// Takes the answer to a write of a queue or flavor.
    pub(super) fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        if let Some(queues) = &mut self.queues {
            queues.answered(ticket, answer);
        }
    }
}

/// Applies every object of a change. Returns the kind if all of its objects were listed.
fn each<K: Resource<DynamicType = ()>>(
    change: Change<K>,
    mut apply: impl FnMut(&Key, Option<Arc<K>>),
) -> Option<Cow<'static, str>> {
    let listed = change.is_list();
    for_each_object(change, |key, object| apply(&key, object));
    listed.then(|| K::kind(&()))
}
