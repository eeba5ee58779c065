//! One pass about an operated object: decide, execute the orders, decide with the answers.

use std::sync::Arc;

use appwrapper::names::COMPONENT_UNREADABLE;
use crds::{json::merge_patch, meta::is_controlled_by};
use jiff::Timestamp;
use kube::Client;
use ray::{
    PassInputs,
    head::{HeadAnswer, HeadRequest},
    names,
    security::{AUTHORITY_SUBJECT, authority_data},
    service::ServiceMemory,
    step::ObjectTarget,
};
use ring::rand::{SecureRandom, SystemRandom};
use runtime::{
    certs::make_authority,
    events::{EventRecord, EventType, Recorder, Regarding},
    write::{DeletePreconditions, DeletePropagation, Write, WriteError},
    writer::{WriteOutcome, Writer},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    PhaseMetrics,
    component_kinds::ComponentKinds,
    head_client::AskHead,
    object_cache::{ObjectFamily, ObjectId},
    parent::{AllSettings, ParentId, ParentKind, PassFacts},
    pass_queue::PassOutcome,
    pass_reads::ObjectRead,
    resources::{is_watched, route_kinds},
    step::{OrderAnswer, PassEnd, PassOrder, PassStep, Refusal},
    unwatched::{UnwatchedObject, unwatched_objects},
};

/// The most calls of a decision in one pass. Each call but the last executes an order, so a pass that exceeds it does not end.
const MOST_CALLS: usize = 10_000;

/// What passes share.
pub(super) struct PassIo {
    pub(super) client: Client,
    pub(super) writer: Writer,
    pub(super) recorder: Recorder,
    pub(super) heads: Box<dyn AskHead>,
    pub(super) kinds: ComponentKinds,
    pub(super) settings: AllSettings,
    pub(super) phases: PhaseMetrics,
    /// The time of each pass.
    pub(super) clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

/// What a pass saw and did.
pub(super) struct PassReport {
    pub(super) id: ParentId,
    pub(super) outcome: PassOutcome,
    /// How many objects the pass has read beside its own.
    pub(super) n_children: usize,
    /// Objects as stored, in the order of the answers.
    pub(super) stored: Vec<StoredObject>,
    /// Objects that were asked to go, with their uids.
    pub(super) deleted: Vec<(ObjectId, String)>,
    /// What the next pass about the object is given, if that changed.
    pub(super) memory: Option<ServiceMemory>,
}

/// An object that answered a request.
pub(super) struct StoredObject {
    /// When the request was sent.
    pub(super) sent: Instant,
    pub(super) object: Arc<Value>,
}

/// A pass in progress.
pub(super) struct OperatorPass {
    pub(super) io: Arc<PassIo>,
    pub(super) id: ParentId,
    parent: Arc<Value>,
    children: Vec<Arc<Value>>,
    facts: PassFacts,
    report: PassReport,
}

/// The answer to a write is unknown, or what the decision must see cannot be read.
pub(super) struct Interruption;

impl OperatorPass {
    pub(super) fn new(
        io: Arc<PassIo>,
        id: ParentId,
        (parent, children): ObjectFamily,
        facts: PassFacts,
    ) -> Self {
        let report = PassReport {
            id: id.clone(),
            outcome: PassOutcome::Interrupted,
            n_children: children.len(),
            stored: Vec::new(),
            deleted: Vec::new(),
            memory: None,
        };
        Self { io, id, parent, children, facts, report }
    }

    /// Runs the pass to its end.
    pub(super) async fn run(mut self) -> PassReport {
        let now = (self.io.clock)();
        let Some(seed) = random_seed() else {
            tracing::warn!(object = %self.id, "there are no random numbers for a pass");
            return self.report;
        };
        let inputs = PassInputs { now, seed };
        if let Ok(()) = self.add_unwatched(&inputs).await
            && let Ok(ends) = self.run_orders(&inputs).await
            && let Ok(outcome) = self.end(ends).await
        {
            self.report.outcome = outcome;
        }
        self.report
    }

    /// Objects of components are of any kind, and those of routes and of users bear no label, so they are read and not watched.
    async fn add_unwatched(&mut self, inputs: &PassInputs) -> Result<(), Interruption> {
        let settings = &self.io.settings.ray;
        let unwatched = unwatched_objects(&self.parent, &self.children, inputs, settings);
        for UnwatchedObject { target, is_made } in unwatched {
            match self.read(&target).await? {
                ObjectRead::There(object) => self.children.push(Arc::new(object)),
                ObjectRead::Absent => {}
                // Creating it meets it, and its refusal is explained.
                ObjectRead::Forbidden(_) if !is_made => {}
                // As a missing component it would fail its AppWrapper, and after a deletion its pods would stay.
                ObjectRead::Forbidden(why) => {
                    let ObjectTarget { kind, name, .. } = &target;
                    let message = format!("Cannot read the component {kind} {name}: {why}");
                    self.record(true, COMPONENT_UNREADABLE, message);
                    return Err(Interruption);
                }
            }
        }
        Ok(())
    }

    /// Executes orders until the decision has none. Returns what belongs to the end of the pass.
    async fn run_orders(&mut self, inputs: &PassInputs) -> Result<Vec<PassEnd>, Interruption> {
        let mut answers = Vec::new();
        for _ in 0..MOST_CALLS {
            let family = (&*self.parent, self.children.as_slice());
            let settings = &self.io.settings;
            let steps = self.id.kind.decide(family, &self.facts, &answers, inputs, settings);
            let mut ends = Vec::new();
            let mut orders = Vec::new();
            for step in steps {
                match step {
                    PassStep::PassOrder(order) => orders.push(order),
                    PassStep::End(end) => ends.push(end),
                }
            }
            if orders.is_empty() {
                return Ok(ends);
            }
            for order in orders {
                let answer = self.execute(order).await?;
                let refused = answer.is_refused();
                answers.push(answer);
                // The decision takes another course now: it may not want the orders behind this one.
                if refused {
                    break;
                }
            }
        }
        tracing::error!(object = %self.id, "a decision does not end");
        Err(Interruption)
    }

    async fn execute(&mut self, order: PassOrder) -> Result<OrderAnswer, Interruption> {
        match order {
            PassOrder::Create(object) => self.create(object).await,
            PassOrder::Apply(object) => self.apply(&object).await,
            PassOrder::CreateAuthority(secret) => self.create_authority(secret).await,
            PassOrder::Patch { target, mut patch } => {
                // The API server refuses another uid, so a successor of the same name stays as it is.
                if !target.uid.is_empty() {
                    patch["metadata"]["uid"] = json!(target.uid);
                }
                let Some(resource) = self.resource(&target).await? else {
                    return Ok(unknown_kind(&target));
                };
                let write = Write::of("operator-patch", &resource);
                let write = write.merge(&self.key(&target), None, &patch);
                self.send(&target, write).await
            }
            PassOrder::Delete { target, force } => self.delete(target, force).await,
            PassOrder::Ask(request) => Ok(OrderAnswer::Head(self.ask(&request).await)),
        }
    }

    async fn create(&mut self, mut object: Value) -> Result<OrderAnswer, Interruption> {
        let target = ObjectTarget::of(&object);
        let is_component = self.id.kind == ParentKind::AppWrapper;
        let ObjectTarget { api_version, kind, .. } = &target;
        if is_component && let Some(message) = self.io.kinds.refusal(api_version, kind) {
            return Ok(OrderAnswer::Refused(Refusal { code: 404, message, unknown_kind: true }));
        }
        let Some(resource) = self.resource(&target).await? else {
            return Ok(unknown_kind(&target));
        };
        object["metadata"]["namespace"] = json!(self.id.key.namespace.as_deref());
        let write = Write::of("operator-create", &resource).create(object);
        let answer = self.send(&target, write).await?;
        let sent = Instant::now();
        if let OrderAnswer::Refused(Refusal { code: 409, .. }) = &answer
            && let ObjectRead::There(object) = self.read(&target).await?
        {
            let object = Arc::new(object);
            let is_own = is_own(&self.parent, &object);
            // Those of others without a watched label are read by name in each pass: no watch would change or remove them here.
            if self.id.kind.reads(&self.parent, &object) && (is_own || is_watched(&object)) {
                self.keep(sent, &object);
            }
            // The object of an earlier pass that had no answer.
            if is_own {
                return Ok(OrderAnswer::Done(object));
            }
        }
        Ok(answer)
    }

    async fn apply(&mut self, object: &Value) -> Result<OrderAnswer, Interruption> {
        let target = ObjectTarget::of(object);
        let Some(resource) = self.resource(&target).await? else {
            return Ok(unknown_kind(&target));
        };
        let (write, key) = (Write::of("operator-apply", &resource), self.key(&target));
        self.send(&target, write.apply(&key, None, names::SECURITY_MANAGER, object)).await
    }

    /// The key of a CA is made here: a decision has too little randomness for one, and would make it again with every call.
    async fn create_authority(&mut self, mut secret: Value) -> Result<OrderAnswer, Interruption> {
        match make_authority(AUTHORITY_SUBJECT, (self.io.clock)()) {
            Ok(pair) => {
                secret["stringData"] = authority_data(&pair.key, &pair.certificate);
                self.create(secret).await
            }
            Err(error) => Ok(OrderAnswer::Refused(Refusal {
                code: 500,
                message: error.to_string(),
                unknown_kind: false,
            })),
        }
    }

    async fn delete(
        &mut self,
        target: ObjectTarget,
        force: bool,
    ) -> Result<OrderAnswer, Interruption> {
        let Some(resource) = self.resource(&target).await? else {
            return Ok(unknown_kind(&target));
        };
        let key = self.key(&target);
        // A successor of the same name stays.
        let only = DeletePreconditions {
            uid: Some(target.uid.clone()).filter(|uid| !uid.is_empty()),
            resource_version: None,
        };
        let write = Write::of("operator-delete", &resource);
        let write = if force {
            write.delete_now(&key, only)
        } else {
            write.delete(&key, only, propagation(&target))
        };
        let n_stored = self.report.stored.len();
        let answer = self.send(&target, write).await?;
        // What a deletion answers is the object before it, or a status.
        self.report.stored.truncate(n_stored);
        if !answer.is_refused() {
            self.report.deleted.push((ObjectId { kind: target.kind, key }, target.uid));
            return Ok(OrderAnswer::Done(Arc::default()));
        }
        Ok(answer)
    }

    /// Keeps an object for the next pass, unless each pass reads it. No watch would ever change or remove such an object: a Gateway
    /// would never be accepted, and after its deletion never be gone.
    fn keep(&mut self, sent: Instant, object: &Arc<Value>) {
        let is_kind = |kind: &str| object["kind"] == kind;
        let is_read = match self.id.kind {
            ParentKind::RayService => route_kinds().iter().any(|route| is_kind(&route.kind)),
            ParentKind::AppWrapper => {
                ParentKind::parse(object["kind"].as_str().unwrap_or_default()).is_none()
            }
            ParentKind::RayCluster | ParentKind::RayJob | ParentKind::RayCronJob => false,
        };
        if !is_read {
            self.report.stored.push(StoredObject { sent, object: Arc::clone(object) });
        }
    }

    async fn send(
        &mut self,
        target: &ObjectTarget,
        write: Result<Write, WriteError>,
    ) -> Result<OrderAnswer, Interruption> {
        let refused = |code, message: &str| {
            OrderAnswer::Refused(Refusal { code, message: message.to_owned(), unknown_kind: false })
        };
        let write = match write {
            Ok(write) => write,
            Err(error) => return Ok(refused(422, &error.to_string())),
        };
        let object = write.object.clone();
        let sent = Instant::now();
        Ok(match self.io.writer.send(write).await {
            WriteOutcome::Done(stored) => {
                let stored = Arc::new(stored.tree());
                self.keep(sent, &stored);
                OrderAnswer::Done(stored)
            }
            WriteOutcome::Exists => refused(409, &format!("{object} already exists")),
            WriteOutcome::Stale => refused(409, &format!("{object} has changed")),
            WriteOutcome::Gone => refused(404, &format!("{object} not found")),
            WriteOutcome::Refused { code, message, .. } => refused(code, &message),
            // The answer of a cluster that does not serve the kind, or of a program between.
            WriteOutcome::UnnamedNotFound(_) if self.discover(target).await?.is_none() => {
                refused(404, &format!("{object} not found"))
            }
            // It may have been done: the watch will show it.
            WriteOutcome::Unknown(_) | WriteOutcome::UnnamedNotFound(_) => {
                return Err(Interruption);
            }
        })
    }

    /// The end of a pass: events, the status, and the time of the next pass.
    async fn end(&mut self, ends: Vec<PassEnd>) -> Result<PassOutcome, Interruption> {
        let mut next = None;
        for end in ends {
            match end {
                PassEnd::Event { warning, reason, message } => {
                    self.record(warning, reason, message);
                }
                PassEnd::Requeue(after) => {
                    next = Some(next.map_or(after, |next| after.min(next)));
                }
                PassEnd::Remember(memory) => self.report.memory = Some(memory),
                PassEnd::Status(status) => {
                    if self.write_status(&status).await?.is_refused() {
                        // The object changed: the decision is made again about the newer one.
                        return Err(Interruption);
                    }
                    if self.id.kind == ParentKind::AppWrapper {
                        let namespace = self.id.key.namespace.as_deref().unwrap_or_default();
                        self.io.phases.note(namespace, &self.parent["status"], &status);
                    }
                }
            }
        }
        Ok(PassOutcome::Complete(next))
    }

    /// The version is that of the last answer about the object, since a pass may have changed its finalizers.
    async fn write_status(&mut self, status: &Value) -> Result<OrderAnswer, Interruption> {
        let is_parent =
            |object: &&Arc<Value>| object["metadata"]["uid"] == self.parent["metadata"]["uid"];
        let mut stored = self.report.stored.iter().map(|stored| &stored.object);
        let newest = stored.rfind(is_parent).unwrap_or(&self.parent);
        let mut fields =
            json!({"metadata": {"resourceVersion": newest["metadata"]["resourceVersion"]}});
        // An equal status costs no write.
        let Some(change) = merge_patch(&self.parent["status"], status) else {
            return Ok(OrderAnswer::Done(Arc::default()));
        };
        fields["status"] = change;
        let resource = self.id.kind.resource();
        let write = Write::of("operator-status", &resource);
        let write = write.merge(&self.id.key, Some("status"), &fields);
        self.send(&ObjectTarget::of(&self.parent), write).await
    }

    fn record(&self, warning: bool, reason: &'static str, message: String) {
        let uid = self.parent["metadata"]["uid"].as_str().unwrap_or_default();
        let resource = self.id.kind.resource();
        self.io.recorder.record(EventRecord {
            regarding: Regarding::dynamic(&resource, self.id.key.clone(), uid),
            event_type: if warning { EventType::Warning } else { EventType::Normal },
            action: "Reconcile".to_owned(),
            reason: reason.to_owned(),
            note: message,
            controller: Some(self.id.kind.reporter().to_owned()),
        });
    }

    async fn ask(&self, request: &HeadRequest) -> HeadAnswer {
        let namespace = self.id.key.namespace.as_deref().unwrap_or_default();
        let token = match &request.token_secret {
            None => None,
            Some(name) => match self.token(namespace, name).await {
                Some(token) => Some(token),
                None => {
                    return HeadAnswer::Unreachable(format!("the Secret {name} has no auth_token"));
                }
            },
        };
        self.io.heads.ask(request, namespace, token.as_deref()).await
    }
}

/// A ReplicaSet makes pods until it is gone, which would be after its Deployment: the AppWrapper would have given up its quota by then.
fn propagation(target: &ObjectTarget) -> DeletePropagation {
    match (target.api_version.as_str(), target.kind.as_str()) {
        ("apps/v1", "Deployment") => DeletePropagation::Foreground,
        _ => DeletePropagation::Background,
    }
}

fn unknown_kind(target: &ObjectTarget) -> OrderAnswer {
    let message = format!("this agent makes no objects of {} {}", target.api_version, target.kind);
    OrderAnswer::Refused(Refusal { code: 404, message, unknown_kind: true })
}

/// Whether `parent` is the controller of an object that stays.
fn is_own(parent: &Value, object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_null() && is_controlled_by(object, parent)
}

/// What names of a pass are made from. Those of equal seeds would meet the objects of another pass.
fn random_seed() -> Option<[u8; 32]> {
    let mut seed = [0; 32];
    SystemRandom::new().fill(&mut seed).ok()?;
    Some(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_stays_until_its_replica_sets_are_gone() {
        let of = |api_version: &str, kind: &str| {
            propagation(&ObjectTarget::of(&json!({"apiVersion": api_version, "kind": kind})))
        };
        assert_eq!(of("apps/v1", "Deployment"), DeletePropagation::Foreground);
        assert_eq!(of("batch/v1", "Job"), DeletePropagation::Background);
        assert_eq!(of("v1", "Pod"), DeletePropagation::Background);
    }
}
