//! Workloads: into the engine, and what was decided about them out, one write at a time.

use std::{sync::Arc, time::Duration};

use crds::{
    names::{
        ADMISSION_MANAGER,
        conditions::{ADMITTED, DEACTIVATION_TARGET, EVICTED, FINISHED, QUOTA_RESERVED},
        reasons,
    },
    v1beta2::{Workload, WorkloadStatus},
};
use engine::{Event, ids::WorkloadId};
use jiff::Timestamp;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::{Change, Key},
    write::{DeletePreconditions, DeletePropagation, Write},
    writer::WriteOutcome,
};
use serde_json::{Value, json};

use super::{
    Control, Destination, Order, Purpose, Role, Subject, Ticket,
    due::What,
    held::after,
    lifecycle,
    record::{Pending, Record, Trip, has_quota, is},
    time,
};

/// The least time between two reasons for which a Workload waits: where much goes on, they change with every pod.
const EXPLAIN_AGAIN: Duration = Duration::from_secs(5);

impl Control {
    /// Tells the engine, and has it look.
    pub(super) fn tell(&mut self, events: Vec<Event>) {
        self.schedule |= !events.is_empty();
        if events.iter().any(|event| !is_of_workload(event)) {
            self.due.now(What::Queues);
        }
        events.into_iter().for_each(|event| self.engine.apply(event));
    }

    pub(super) fn workloads(&mut self, change: Change<Workload>, now: Timestamp) {
        let many_may_be_gone =
            matches!(&change, Change::Reset { removed, .. } if !removed.is_empty());
        self.take(change, |this, key, object| match object {
            Some(object) => this.see_workload(&key, object, now),
            None => this.lose_workload(&key),
        });
        if many_may_be_gone {
            self.sweep_all();
        }
    }

    fn see_workload(&mut self, key: &Key, object: Workload, now: Timestamp) {
        let Some(record) = self.workloads.get_mut(key) else {
            return self.meet_workload(key, object, now);
        };
        if record.held.object.metadata.uid != object.metadata.uid {
            self.lose_workload(key);
            return self.meet_workload(key, object, now);
        }
        let before = record.held.object.clone();
        if record.held.see(object) {
            self.changed_workload(key, Some(&before), now);
        }
    }

    fn meet_workload(&mut self, key: &Key, object: Workload, now: Timestamp) {
        if self.settings.role == Role::Thin {
            // Its made-up queue takes Workloads from every namespace, whatever the labels.
            let (names, labels) = (self.engine.names_mut(), Default::default());
            let namespace = key.namespace.as_deref().unwrap_or_default();
            let events = self.index.namespace(names, namespace, Some(&labels));
            self.tell(events);
        }
        let id = self.engine.names_mut().workloads.intern(&key.to_string());
        self.by_id.insert(id, key.clone());
        self.workloads.insert(key.clone(), Record::new(object, id, now));
        self.changed_workload(key, None, now);
        self.recover_placement(key);
    }

    fn lose_workload(&mut self, key: &Key) {
        let Some(record) = self.workloads.remove(key) else {
            return;
        };
        self.jobs.workload_gone(key, &record.held.object);
        self.owner_due(key, record.object());
        self.counts_change(key, record.object());
        self.forget_id(key, record.id);
        self.deadlines.set(key, None);
        self.remotes.values_mut().for_each(|remote| remote.forget_refusal(key));
        self.note_at_gate(key);
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let events = self.index.workload_gone(self.engine.names(), namespace, &key.name);
        self.tell(events);
        self.due.now(What::Workload(key.clone()));
    }

    /// The engine may give the number of a Workload that is over to another.
    fn forget_id(&mut self, key: &Key, id: WorkloadId) {
        if self.by_id.get(&id) == Some(key) {
            self.by_id.remove(&id);
            if let Some(version) = self.ended_at(key, id) {
                self.fleet.workload_ended(id, version);
            }
            self.fleet.workload_removed(id);
        }
    }

    /// Enters what is known of a Workload now.
    fn changed_workload(&mut self, key: &Key, before: Option<&Workload>, now: Timestamp) {
        if self.refuses(key) {
            self.due.now(What::Workload(key.clone()));
            return;
        }
        let Self { workloads, index, engine, fleet, .. } = self;
        let Some(record) = workloads.get_mut(key) else {
            return;
        };
        let id = record.id;
        let object = &record.held.object;
        let mut events = Vec::new();
        // What was assumed for another spec is worth nothing.
        if before.is_some_and(|before| before.spec != object.spec) && record.wants.reserve.is_some()
        {
            record.wants.reserve = None;
            fleet.unplace(id);
            events.push(Event::WriteFailed(id));
        }
        let entered = index.workload(engine.names_mut(), &record.held.object, time(now));
        let released = before.is_some_and(has_quota) && !has_quota(&record.held.object);
        events.extend(entered);
        if released {
            record.trip = Trip::fresh(now);
        }
        let finished = is(&record.held.object, FINISHED);
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let wake = index.requeue_at(engine.names(), namespace, &key.name);
        self.tell(events);
        if finished {
            self.forget_id(key, id);
        }
        if let Some(at) = wake {
            self.due.at(super::timestamp(at), What::Workload(key.clone()));
        }
        self.note_at_gate(key);
        self.old_slice_due(key);
        let object = Arc::clone(&self.workloads[key].held.object);
        self.jobs.workload_seen(key, &object);
        self.owner_due(key, &object);
        self.counts_change(key, &object);
        if let Some(before) = before {
            self.counts_change(key, before);
        }
        self.due.now(What::Workload(key.clone()));
    }

    /// Enters pending Workloads again whose requests may be others now.
    pub(super) fn enter_again(
        &mut self,
        now: Timestamp,
        concerned: impl Fn(&Key, &Workload) -> bool,
    ) {
        let keys: Vec<Key> = self
            .workloads
            .iter()
            .filter(|(key, record)| concerned(key, record.object()) && !has_quota(record.object()))
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.changed_workload(&key, None, now);
        }
    }

    /// What is known of a Workload by its number.
    pub(super) fn record_of(&self, id: WorkloadId) -> Option<&Record> {
        self.workloads.get(self.by_id.get(&id)?)
    }

    pub(super) fn all_workloads_due(&mut self) {
        self.due.workloads.extend(self.workloads.keys().cloned());
        self.all_orphans_due();
    }

    /// Decides about every Workload that is due; how many.
    pub(super) fn decide_workloads(&mut self, now: Timestamp) -> usize {
        let due = std::mem::take(&mut self.due.workloads);
        for key in &due {
            self.end_of_backoff(key, now);
            self.decide_copies(key, now);
            self.decide_workload(key, now);
        }
        due.len()
    }

    /// A backoff that has ended shows only in the time.
    fn end_of_backoff(&mut self, key: &Key, now: Timestamp) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let wake = self.index.requeue_at(self.engine.names(), namespace, &key.name);
        if wake.is_some_and(|at| at <= time(now)) {
            self.changed_workload(key, None, now);
            self.due.workloads.remove(key);
        }
    }

    fn decide_workload(&mut self, key: &Key, now: Timestamp) {
        self.note_blocker(key, now);
        self.finish_if_replaced(key);
        let Some(record) = self.workloads.get(key) else {
            return;
        };
        if !record.held.is_free(now) {
            if let Some(at) = record.held.later() {
                self.due.at(at, What::Workload(key.clone()));
            }
            return;
        }
        if let Some(order) = self.refusal(key, now) {
            return self.send(order);
        }
        if let Some(order) = self.workload_spec(key) {
            return self.send(order);
        }
        let requests = match &record.wants.pending {
            Some(_) => self.index.resource_requests(record.object()),
            None => Vec::new(),
        };
        let surroundings = lifecycle::Surroundings {
            requests,
            stop: self.stop_policy(key),
            dispatched: self.dispatching_check(key),
            pods_ready: self.pods_ready(key),
            patience: self.settings.patience,
            limited: self.settings.role != Role::Thin,
            stranded: self.stranded(key),
        };
        let Some(record) = self.workloads.get_mut(key) else {
            return;
        };
        if lifecycle::drop_what_cannot_be(record) {
            self.fleet.unplace(record.id);
            let (event, workload) =
                (Event::WriteFailed(record.id), Arc::clone(&record.held.object));
            self.counts_change(key, &workload);
            self.tell(vec![event]);
            self.note_at_gate(key);
            self.due.now(What::Workload(key.clone()));
            return;
        }
        self.deadlines.set(key, lifecycle::deadline(record.object(), &surroundings));
        tracing::trace!(workload = %key, wants = ?record.wants, "looked at");
        match lifecycle::next(record, &surroundings, now) {
            lifecycle::Next::Write { purpose, status } => {
                let order = status_order(key, record.object(), purpose, &status);
                order.into_iter().for_each(|order| self.send(order));
            }
            lifecycle::Next::Wait(until) => self.due.at(until, What::Workload(key.clone())),
            lifecycle::Next::Nothing => {}
        }
    }

    /// Whether the pods of a Workload's job are ready, where that is noted.
    fn pods_ready(&self, key: &Key) -> Option<bool> {
        self.settings.patience?;
        let workload = self.workloads.get(key)?.object();
        let (_, job) = self.jobs.of(key, workload)?;
        ::jobs::reconcile::pods_ready(job)
    }

    /// What waits in no open queue is never looked at by a cycle, and must be told why all the same.
    fn note_blocker(&mut self, key: &Key, now: Timestamp) {
        let Some(record) = self.workloads.get_mut(key) else {
            return;
        };
        if has_quota(record.object()) || record.wants.reserve.is_some() {
            return;
        }
        let workload = record.object();
        let leaves = workload.metadata.deletion_timestamp.is_some();
        if leaves || workload.spec.active == Some(false) {
            self.fleet.reset_waiting(record.id);
        }
        if let Some((reason, message)) = self.index.inactive_queue(record.object()) {
            // No cycle will say that it does not wait for room.
            self.fleet.pause_waiting(record.id);
            let (reason, message) = (reason.to_owned(), message);
            let not_before = match &record.wants.pending {
                Some(known) => known.not_before,
                None => after(now, self.settings.explain_after),
            };
            record.wants.pending = Some(Pending { reason, message, gated: false, not_before });
        }
    }

    /// Changes of the spec that are ours to make: a class's value, and giving up for good.
    fn workload_spec(&self, key: &Key) -> Option<Order> {
        let workload = self.workloads.get(key)?.object();
        if is(workload, FINISHED) || workload.metadata.deletion_timestamp.is_some() {
            return None;
        }
        if let Some(value) = self.stale_priority(workload) {
            let fields = json!({ "spec": { "priority": value } });
            return merge_order(key, workload, Purpose::Priority, fields);
        }
        if lifecycle::is_to_be_deactivated(workload) {
            let fields = json!({ "spec": { "active": false } });
            return merge_order(key, workload, Purpose::Deactivate, fields);
        }
        None
    }

    fn stale_priority(&self, workload: &Workload) -> Option<i32> {
        let class = workload.spec.priority_class_ref.as_ref()?;
        if class.kind != "WorkloadPriorityClass" {
            return None;
        }
        let value = self.configuration.workload_priority(class)?;
        (workload.spec.priority != Some(value)).then_some(value)
    }

    fn stop_policy(&self, key: &Key) -> lifecycle::Stop {
        let Some(workload) = self.workloads.get(key).map(Record::object) else {
            return lifecycle::Stop::No;
        };
        let local_queue = self.queues.local_queue_of(key, workload);
        // Who holds nothing goes where its queue points.
        let held = workload.status.admission.as_ref().map(|one| &one.cluster_queue);
        let target = held.or(local_queue.map(|queue| &queue.spec.cluster_queue));
        let cluster_queue = target.and_then(|name| self.queues.cluster_queues.get(name.as_str()));
        lifecycle::stop(
            cluster_queue.and_then(|queue| queue.held.object.spec.stop_policy.as_deref()),
            local_queue.and_then(|queue| queue.spec.stop_policy.as_deref()),
        )
    }

    /// Sends an order; its object is not written again before the answer.
    pub(super) fn send(&mut self, order: Order) {
        let ticket = &order.ticket;
        if ticket.to == Destination::Home {
            match ticket.subject {
                Subject::Workload => {
                    if let Some(record) = self.workloads.get_mut(&ticket.key) {
                        record.held.sent();
                    }
                }
                Subject::Job => self.jobs.sent(&ticket.key),
                _ => {}
            }
        }
        self.orders.push(order);
    }

    pub(super) fn answer(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        match (&ticket.to, ticket.subject) {
            (Destination::Worker(cluster), _) => self.remote_answer(cluster, ticket, answer, now),
            (Destination::Home, Subject::Workload) => self.workload_answer(ticket, answer, now),
            (Destination::Home, Subject::Job) => self.job_answer(ticket, answer, now),
            (Destination::Home, Subject::Capacity) => match self.settings.role {
                Role::Thin => self.capacity_answer(answer, now),
                Role::Manager { .. } => self.shown_answer(ticket, answer, now),
            },
            (Destination::Home, _) => self.condition_answer(ticket, answer, now),
        }
    }

    fn workload_answer(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        let key = &ticket.key;
        if ticket.purpose == Purpose::WorkloadCreate {
            return self.creation_answer(key, answer, now);
        }
        let Some(record) = self.workloads.get_mut(key) else {
            return;
        };
        if answer == WriteOutcome::Gone && record.held.is_as_sent() {
            // The watch need not say so: it may never have told of what came and went between two lists.
            return self.lose_workload(key);
        }
        let done = matches!(answer, WriteOutcome::Done(_));
        let before = record.held.object.clone();
        record.held.answered(answer, now);
        let news = record.held.object.metadata.resource_version != before.metadata.resource_version;
        if done {
            if ticket.purpose == Purpose::RaiseEpoch {
                record.trip.raised = true;
                // Whatever a copy of the epoch before says now.
                record.wants.ready = None;
            }
            if ticket.purpose == Purpose::Pending
                && let Some(pending) = &mut record.wants.pending
            {
                pending.not_before = after(now, EXPLAIN_AGAIN);
            }
            lifecycle::forget_what_was_written(record);
            self.announce(key, ticket.purpose);
        }
        if news {
            self.changed_workload(key, Some(&before), now);
        }
        self.due.now(What::Workload(key.clone()));
        let object = Arc::clone(&self.workloads[key].held.object);
        self.owner_due(key, &object);
    }
}

impl Control {
    /// Tells people of what was written, at most twice in the life of a Workload that meets no trouble.
    fn announce(&mut self, key: &Key, purpose: Purpose) {
        let Some(record) = self.workloads.get(key) else {
            return;
        };
        let workload = record.object();
        let find = |kind: &str| ::index::status::find(&workload.status.conditions, kind);
        let said = match purpose {
            Purpose::Reserve | Purpose::Admit | Purpose::Dispatched if is(workload, ADMITTED) => {
                find(ADMITTED)
            }
            Purpose::Evict => find(EVICTED),
            Purpose::Pending => find(QUOTA_RESERVED),
            Purpose::Finish => {
                find(FINISHED).filter(|one| one.reason == reasons::WORKLOAD_SLICE_REPLACED)
            }
            Purpose::DeactivationTarget => find(DEACTIVATION_TARGET)
                .filter(|one| one.reason == reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED),
            _ => None,
        };
        let Some(said) = said else {
            return;
        };
        let (warning, reason) = match purpose {
            Purpose::Evict => (false, format!("EvictedDueTo{}", said.reason)),
            Purpose::Pending | Purpose::DeactivationTarget => (true, said.reason.clone()),
            _ => (false, said.reason.clone()),
        };
        let limit = workload.spec.maximum_execution_time_seconds.unwrap_or_default();
        let message = match &workload.status.cluster_name {
            _ if purpose == Purpose::DeactivationTarget => {
                format!("The maximum execution time ({limit}s) exceeded")
            }
            Some(cluster) if purpose == Purpose::Dispatched => {
                format!("The workload was admitted on \"{cluster}\"")
            }
            _ => said.message.clone(),
        };
        let about = Regarding::of(workload);
        let severity = if warning { EventType::Warning } else { EventType::Normal };
        let action = reason.clone();
        self.notices.push(EventRecord {
            regarding: about,
            event_type: severity,
            action,
            reason,
            note: message,
        });
    }
}

/// Whether an event concerns one Workload only. Which queues count it is marked where it changed.
fn is_of_workload(event: &Event) -> bool {
    match event {
        Event::Workload(..)
        | Event::WorkloadGone(_)
        | Event::Evicting(_)
        | Event::Released { .. }
        | Event::ClusterCapacity(_)
        | Event::Written(_)
        | Event::WriteFailed(_)
        | Event::UnhealthyNodes(..)
        | Event::Admitted(..) => true,
        Event::Namespace(..)
        | Event::Flavor(..)
        | Event::Topology(..)
        | Event::Node(..)
        | Event::Check(..)
        | Event::Cohort(..)
        | Event::ClusterQueue(..)
        | Event::LocalQueue(..)
        | Event::AdmissionFairSharing(_)
        | Event::ConsumedResources(..)
        | Event::SampleUsage(_) => false,
    }
}

/// The status as our field manager has it, on the condition that the Workload is as it was seen.
fn status_order(
    key: &Key,
    workload: &Workload,
    purpose: Purpose,
    status: &WorkloadStatus,
) -> Option<Order> {
    let owned = ::index::status::owned_fields(status.clone());
    let fields = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": preconditions(key, workload),
        "status": owned,
    });
    let ticket = Ticket::home(Subject::Workload, key, purpose);
    Order::of(ticket, |purpose, key| {
        Write::apply::<Workload>(purpose, key, Some("status"), ADMISSION_MANAGER, &fields)
    })
}

/// Which object, and that it is as it was seen.
pub(super) fn preconditions(key: &Key, workload: &Workload) -> Value {
    json!({
        "name": key.name,
        "namespace": key.namespace,
        "uid": workload.metadata.uid,
        "resourceVersion": workload.metadata.resource_version,
    })
}

/// Merges fields into a Workload, on the condition that it is as it was seen.
pub(super) fn merge_order(
    key: &Key,
    workload: &Workload,
    purpose: Purpose,
    mut fields: Value,
) -> Option<Order> {
    let metadata = &mut fields["metadata"];
    metadata["uid"] = json!(workload.metadata.uid);
    metadata["resourceVersion"] = json!(workload.metadata.resource_version);
    let ticket = Ticket::home(Subject::Workload, key, purpose);
    Order::of(ticket, |purpose, key| Write::merge::<Workload>(purpose, key, None, &fields))
}

/// Deletes a Workload as it was seen.
pub(super) fn delete_order(key: &Key, workload: &Workload, purpose: Purpose) -> Option<Order> {
    let only = DeletePreconditions { uid: workload.metadata.uid.clone(), resource_version: None };
    let ticket = Ticket::home(Subject::Workload, key, purpose);
    Order::of(ticket, |purpose, key| {
        Write::delete::<Workload>(purpose, key, only, DeletePropagation::Background)
    })
}
