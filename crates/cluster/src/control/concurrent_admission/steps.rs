//! Steps about variants as writes and transitions.

use crds::{
    names::{reasons, reporters},
    v1beta2::Workload,
};
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
    write::Write,
};
use variants::VariantStep;

use crate::control::{
    core::Core,
    outbox::{Intent, Purpose, Stamp, Subject, Target},
    timers::Reevaluation,
    workloads::{Transition, WorkloadCommand},
};

/// Takes one step. What cannot be written now is decided again when it can.
pub(super) fn take(key: &Key, parent: &Workload, step: VariantStep, core: &mut Core) {
    let variant_key = |name: &str| Key { namespace: key.namespace.clone(), name: name.into() };
    let own = |name: &str, reason: &str, note: String, core: &Core| {
        let record = core.workloads.get(&variant_key(name))?;
        Some(event(record.object(), reason, note))
    };
    let (name, command, event) = match step {
        VariantStep::Create(variant) => return create(key, &variant, core),
        VariantStep::Release(name) => {
            return core.workloads.propose(&variant_key(&name), Transition::Release, &mut core.ctx);
        }
        VariantStep::OpenGate(name) => {
            return core.workloads.propose(
                &variant_key(&name),
                Transition::OpenGate,
                &mut core.ctx,
            );
        }
        VariantStep::Finish { variant, reason, message } => {
            let finish = Transition::Finish { reason, message };
            return core.workloads.propose(&variant_key(&variant), finish, &mut core.ctx);
        }
        VariantStep::DeactivateParent => {
            return core.workloads.perform(key, &WorkloadCommand::Deactivate, None, &mut core.ctx);
        }
        VariantStep::Delete { variant, note } => {
            let event = Some(event(parent, reasons::DELETED_VARIANT, note));
            (variant, WorkloadCommand::Delete, event)
        }
        VariantStep::Activate { variant, note } => {
            let event = own(&variant, reasons::ACTIVATED_VARIANT, note, core);
            (variant, WorkloadCommand::Activate, event)
        }
        VariantStep::Deactivate { variant, note } => {
            let event = own(&variant, reasons::DEACTIVATED_VARIANT, note, core);
            (variant, WorkloadCommand::Deactivate, event)
        }
        VariantStep::SetPriority(variant, priority) => {
            (variant, WorkloadCommand::SetPriorityClass(priority), None)
        }
    };
    core.workloads.perform(&variant_key(&name), &command, event, &mut core.ctx);
}

fn create(parent: &Key, variant: &Workload, core: &mut Core) {
    let (target, base) = (Target::home(Subject::Workload, &Key::of(variant)), Stamp::default());
    let waiter = Reevaluation::Workload(parent.clone());
    if core.ctx.free_or_wait(&target, &base, &waiter) {
        let intent = Intent { target, purpose: Purpose::VariantCreate, base, waiter };
        core.ctx.outbox.submit(intent, |purpose, _| Write::create(purpose, variant));
    }
}

/// The Event of a variant that was created.
pub(super) fn creation(parent: &Workload, variant: &Key) -> EventRecord {
    let note = format!("Variant Workload \"{variant}\" created");
    event(parent, reasons::CREATED_VARIANT, note)
}

fn event(regarding: &Workload, reason: &str, note: String) -> EventRecord {
    EventRecord {
        regarding: Regarding::of(regarding),
        event_type: EventType::Normal,
        action: reason.to_owned(),
        reason: reason.to_owned(),
        note,
        controller: Some(reporters::CONCURRENT_ADMISSION.to_owned()),
    }
}
