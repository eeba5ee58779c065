//! Requests and templates as writes, and the answers to these.

use ::provisioning::{EntryTemplate, ProvisioningRequest, RequestStep};
use crds::{
    names::{reasons, reporters},
    v1beta2::Workload,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
    write::{DeletePreconditions, DeletePropagation, Write},
    writer::WriteOutcome,
};
use serde_json::json;

use super::{Provisioning, evaluation::in_namespace_of};
use crate::control::{
    context::Context,
    outbox::{Intent, Purpose, Settled, Stamp, Subject, Target, Ticket},
    timers::Reevaluation,
};

impl Provisioning {
    /// Takes one step of the check of a Workload. What cannot be written now is decided again when it can.
    pub(super) fn take_step(&mut self, workload: &Key, step: RequestStep, ctx: &mut Context) {
        match step {
            RequestStep::CreateTemplates(templates) => {
                for template in templates {
                    self.create_template(workload, &template, ctx);
                }
            }
            RequestStep::DeleteTemplates(names) => {
                names.iter().for_each(|name| self.delete_template(workload, name, ctx));
            }
            RequestStep::CreateRequest(request) => {
                let name = request.metadata.name.as_deref().unwrap_or_default();
                let target =
                    Target::home(Subject::ProvisioningRequest, &in_namespace_of(workload, name));
                let what = (target, Purpose::ProvisioningRequestCreate, Stamp::default());
                if let Some(intent) = intent(what, workload, ctx) {
                    ctx.outbox.submit(intent, |purpose, _| Write::create(purpose, &*request));
                }
            }
            RequestStep::HandOver(templates) => {
                for (name, owners) in templates {
                    self.hand_over(workload, &name, &owners, ctx);
                }
            }
        }
    }

    fn create_template(&mut self, workload: &Key, template: &EntryTemplate, ctx: &mut Context) {
        let name = template.metadata.name.as_deref().unwrap_or_default();
        let target = Target::home(Subject::PodTemplate, &in_namespace_of(workload, name));
        // The watch has managed ones only. After the first conflict it may be late, after the second it would show an own template.
        if ctx.outbox.writes().conflicts(&target) > 1 {
            let message = format!("PodTemplate {name:?} exists, and is not managed");
            self.refused(workload, name, message);
        }
        let what = (target, Purpose::ProvisioningTemplateCreate, Stamp::default());
        if let Some(intent) = intent(what, workload, ctx) {
            ctx.outbox.submit(intent, |purpose, _| Write::create(purpose, template));
        }
    }

    /// Deletes a request that a Workload has no use for.
    pub(super) fn delete_request(&self, workload: &Key, name: &str, ctx: &mut Context) {
        let key = in_namespace_of(workload, name);
        let base = self.requests.stamp(&key);
        let only = DeletePreconditions {
            uid: base.uid.as_deref().map(Into::into),
            resource_version: None,
        };
        let target = Target::home(Subject::ProvisioningRequest, &key);
        let what = (target, Purpose::ProvisioningRequestDelete, base);
        if let Some(intent) = intent(what, workload, ctx) {
            ctx.outbox.submit(intent, |purpose, key| {
                let propagation = DeletePropagation::Background;
                Write::delete::<ProvisioningRequest>(purpose, key, only, propagation)
            });
        }
    }

    /// Deletes a template that no request uses.
    pub(super) fn delete_template(&self, workload: &Key, name: &str, ctx: &mut Context) {
        let key = in_namespace_of(workload, name);
        let base = self.templates.stamp(&key);
        // With the version: a request may take the template over meanwhile.
        let only = DeletePreconditions {
            uid: base.uid.as_deref().map(Into::into),
            resource_version: Some(base.version.to_string()),
        };
        let target = Target::home(Subject::PodTemplate, &key);
        let what = (target, Purpose::ProvisioningTemplateDelete, base);
        if let Some(intent) = intent(what, workload, ctx) {
            ctx.outbox.submit(intent, |purpose, key| {
                let propagation = DeletePropagation::Background;
                Write::delete::<EntryTemplate>(purpose, key, only, propagation)
            });
        }
    }

    fn hand_over(&self, workload: &Key, name: &str, owners: &[OwnerReference], ctx: &mut Context) {
        let key = in_namespace_of(workload, name);
        let base = self.templates.stamp(&key);
        // The list is replaced as a whole. With the version, an owner that was added meanwhile stays.
        let fields = json!({ "metadata": {
            "ownerReferences": owners, "uid": base.uid, "resourceVersion": base.version.to_string(),
        } });
        let target = Target::home(Subject::PodTemplate, &key);
        let what = (target, Purpose::ProvisioningTemplateOwner, base);
        if let Some(intent) = intent(what, workload, ctx) {
            ctx.outbox.submit(intent, |purpose, key| {
                Write::merge::<EntryTemplate>(purpose, key, None, &fields)
            });
        }
    }

    /// Takes the answer to the write of a request or a template of a Workload.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        settled: &Settled,
        (workload, ctx): (Option<&Workload>, &mut Context),
    ) {
        let key = &ticket.target.key;
        let is_request = ticket.target.subject == Subject::ProvisioningRequest;
        let Reevaluation::Workload(asking) = &ticket.waiter else { return };
        let concerned = match answer {
            WriteOutcome::Done(value) => {
                self.created(asking, &key.name);
                if ticket.purpose == Purpose::ProvisioningRequestCreate {
                    workload
                        .into_iter()
                        .for_each(|one| ctx.outbox.publish(creation(one, &key.name)));
                }
                if is_request {
                    self.requests.observe_answer(key, &value)
                } else {
                    self.templates.observe_answer(key, &value)
                }
            }
            // Only if nothing newer was observed: a successor of the name stays.
            WriteOutcome::Gone if is_request && settled.base == Some(self.requests.stamp(key)) => {
                self.requests.observe(key, None)
            }
            WriteOutcome::Gone
                if !is_request && settled.base == Some(self.templates.stamp(key)) =>
            {
                self.templates.observe(key, None)
            }
            WriteOutcome::Refused { message, .. } => {
                let kind = match ticket.purpose {
                    Purpose::ProvisioningRequestCreate => "ProvisioningRequest",
                    Purpose::ProvisioningTemplateCreate => "PodTemplate",
                    // Refused deletions and owners leave the check as it is, and are tried again.
                    _ => return,
                };
                let message = format!("Error creating {kind} {:?}: {message}", key.name);
                self.refused(asking, &key.name, message);
                Vec::new()
            }
            // The watch shows what is there, or the write is sent again.
            WriteOutcome::Gone
            | WriteOutcome::Exists
            | WriteOutcome::Stale
            | WriteOutcome::Unknown(_)
            | WriteOutcome::UnnamedNotFound(_) => Vec::new(),
        };
        ctx.agenda.workloads(concerned);
    }

    /// Keeps what stands in the way of an object.
    fn refused(&mut self, workload: &Key, object: &str, message: String) {
        self.refusals.entry(workload.clone()).or_default().insert(object.into(), message);
    }

    /// An object was created, or otherwise written.
    fn created(&mut self, workload: &Key, object: &str) {
        if let Some(refusals) = self.refusals.get_mut(workload) {
            refusals.remove(object);
        }
    }
}

/// The Event of a created request.
fn creation(workload: &Workload, request: &str) -> EventRecord {
    EventRecord {
        regarding: Regarding::of(workload),
        event_type: EventType::Normal,
        action: "Created".to_owned(),
        reason: reasons::PROVISIONING_REQUEST_CREATED.to_owned(),
        note: format!("Created ProvisioningRequest: {request:?}"),
        controller: Some(reporters::PROVISIONING.to_owned()),
    }
}

/// The intent of a write; `None` if the object may not be written now.
fn intent(
    (target, purpose, base): (Target, Purpose, Stamp),
    workload: &Key,
    ctx: &mut Context,
) -> Option<Intent> {
    let waiter = Reevaluation::Workload(workload.clone());
    ctx.free_or_wait(&target, &base, &waiter).then_some(Intent { target, purpose, base, waiter })
}
