//! The outbox: every write and every event that the machines of a composition decided.
//!
//! A machine submits a write with the observation that it is based on and with what waits for its answer. The outbox keeps
//! the state of the write ([`Writes`]), allows one write per object at a time, and, when the answer comes back with the
//! ticket, evaluates the waiter again, at once and when a failed write may be tried again. A machine that finds a write of
//! another in flight is evaluated then, too. Machines keep no state of writes of their own.
//!
//! | file | concept |
//! |---|---|
//! | `order` | destination, subject, target, ticket, order |
//! | `purpose` | why something is written: names in metrics, logs and failpoints |
//! | `reason_queue` | the order of the writes that only explain |
//! | `tracked` | an object as it was last observed |
//! | `writes` | writes in flight, outdated, in backoff, unconfirmed |

mod order;
mod purpose;
mod reason_queue;
mod tracked;
mod writes;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crds::json::merge_patch;
use jiff::{SignedDuration, Timestamp};
use kube::Resource;
use runtime::{
    events::EventRecord,
    watch::Key,
    write::{Write, WriteError},
    writer::WriteOutcome,
};
use serde::Serialize;
use serde_json::{Value, json};

pub use self::{
    order::{Destination, Order, Subject, Target, Ticket, TicketId},
    purpose::Purpose,
};

pub(crate) use self::{
    tracked::{Tracked, after, answer_single, decode, decode_job, upsert, upsert_single, version},
    writes::{REMOVAL_SHOWN_WITHIN, Settled, Stamp, Writes, listed_object},
};

#[cfg(test)]
pub(crate) use self::reason_queue::MAX_REASONS_IN_FLIGHT;
use self::reason_queue::ReasonQueue;
use super::{
    key_map::KeyMap,
    measurement::Measurement,
    timers::{Agenda, Reevaluation},
};

/// A write that a machine has decided on.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) target: Target,
    pub(crate) purpose: Purpose,
    /// The observation that the decision is based on.
    pub(crate) base: Stamp,
    /// What is evaluated again when the answer is here.
    pub(crate) waiter: Reevaluation,
}

/// What follows if a write is done.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    pub(crate) events: Vec<EventRecord>,
    pub(crate) measurements: Vec<Measurement>,
}

impl From<EventRecord> for Announcements {
    fn from(event: EventRecord) -> Self {
        Self { events: vec![event], measurements: Vec::new() }
    }
}

/// The writes and Events that are decided and not settled.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    writes: Writes,
    /// By object with a write in flight: the evaluations of other machines that would write it.
    waiting: KeyMap<Target, BTreeSet<Reevaluation>>,
    /// By write in flight: what is announced once that is done. Kept here and not with the object, which the watch may remove before
    /// the answer comes.
    announcements: BTreeMap<TicketId, Announcements>,
    last_ticket: u64,
    reasons: ReasonQueue,
    orders: Vec<Order>,
    events: Vec<EventRecord>,
}

impl Outbox {
    /// Writes and their state.
    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// The watch shows this version of an object, or lacks the object. Returns false if it is too late to say that the object is gone.
    pub(crate) fn observe_version(&mut self, target: &Target, version: Option<u64>) -> bool {
        self.writes.observe_version(target, version)
    }

    /// A deletion was applied, and the watch has not reported it yet.
    pub(crate) fn await_removal(&mut self, target: Target, until: Timestamp) {
        self.writes.await_removal(target, until);
    }

    /// A former leader may have created a copy that the watch does not show yet: it is read.
    pub(crate) fn doubt(&mut self, target: Target, observed: Option<u64>, waiter: Reevaluation) {
        self.writes.doubt(target, observed, waiter);
    }

    /// Copies to be read, with what waits for them.
    pub(crate) fn unsettled_due(&mut self, now: Timestamp) -> Vec<(Target, Reevaluation)> {
        self.writes.unsettled_due(now)
    }

    /// The connection to a worker changed: writes to it that have an answer are forgotten.
    pub(crate) fn connection_changed(&mut self, cluster: &str) {
        self.writes.drop_answered(cluster);
    }

    /// A worker is neither connected nor tried any more: nothing of its writes is kept.
    pub(crate) fn forget_worker(&mut self, cluster: &str) {
        self.writes.forget_worker(cluster);
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            writes,
            waiting: _,
            announcements: _,
            last_ticket: _,
            reasons: _,
            orders: _,
            events: _,
        } = self;
        writes.clock_jumped(by);
    }

    /// Submits a write. Returns false, with a line in the log, if it cannot be encoded.
    pub(crate) fn submit(
        &mut self,
        intent: Intent,
        encode: impl FnOnce(&'static str, &Key) -> Result<Write, WriteError>,
    ) -> bool {
        let write = encode(intent.purpose.name(), &intent.target.key);
        self.submit_encoded(intent, write)
    }

    fn submit_encoded(&mut self, intent: Intent, write: Result<Write, WriteError>) -> bool {
        let Intent { target, purpose, base, waiter } = intent;
        let write = match write {
            Ok(write) => write,
            Err(error) => {
                tracing::error!(%error, "a decision cannot be encoded as a write");
                return false;
            }
        };
        self.last_ticket += 1;
        let ticket = Ticket { id: TicketId::new(self.last_ticket), target, purpose, waiter };
        self.writes.begin(&ticket, base);
        self.orders.push(Order { ticket, write });
        true
    }

    /// Submits the difference between two states of a watched object's status, for the version that it is based on. Returns
    /// false if there is none.
    ///
    /// A new leader may decide on a version that the former one has changed. Without the version, a condition list of that
    /// age would replace the present one.
    pub(crate) fn submit_status<K, S>(&mut self, intent: Intent, before: &S, after: &S) -> bool
    where
        K: Resource<DynamicType = ()>,
        S: Serialize,
    {
        let version = intent.base.version.to_string();
        let Some(mut patch) = status_difference(before, after) else {
            return false;
        };
        patch["metadata"] = json!({ "resourceVersion": version });
        self.submit(intent, |purpose, key| Write::merge::<K>(purpose, key, Some("status"), &patch))
    }

    /// Submits a write of the status of an object that is not watched: only the answers to its writes are known, so a write that
    /// is refused for its version could not be decided again.
    pub(crate) fn submit_status_of_unwatched<K, S>(
        &mut self,
        intent: Intent,
        before: &S,
        after: &S,
    ) -> bool
    where
        K: Resource<DynamicType = ()>,
        S: Serialize,
    {
        let Some(patch) = status_difference(before, after) else {
            return false;
        };
        self.submit(intent, |purpose, key| Write::merge::<K>(purpose, key, Some("status"), &patch))
    }

    /// Takes the turn of a pending Workload to send its reason. Without a turn it waits, and is evaluated when its turn comes.
    pub(crate) fn take_turn_or_wait(&mut self, workload: &Key) -> bool {
        self.reasons.take_turn_or_wait(workload)
    }

    /// The ticket of the write that was just submitted.
    pub(crate) fn last_ticket(&self) -> TicketId {
        TicketId::new(self.last_ticket)
    }

    /// The write that was just submitted only explains.
    pub(crate) fn begin_reason(&mut self) {
        self.reasons.begin(self.last_ticket());
    }

    /// Whether the reason of a Workload waits although it may be sent.
    pub(crate) fn has_sendable_reasons(&self) -> bool {
        self.reasons.has_sendable()
    }

    /// Takes the Workloads of which the reason may be sent now.
    pub(crate) fn take_sendable_reasons(&mut self) -> Vec<Key> {
        self.reasons.take_sendable()
    }

    /// Evaluates `waiter` when the answer to the write in flight is here, or when time allows the next write of the object.
    pub(crate) fn await_turn(
        &mut self,
        target: &Target,
        waiter: &Reevaluation,
        agenda: &mut Agenda,
    ) {
        match self.writes.retry_at(target) {
            Some(at) => agenda.at(at, waiter.clone()),
            // Two machines may write one object: a pod is started by one, and gets its domain from another.
            None => {
                self.waiting.entry(target.clone()).or_default().insert(waiter.clone());
            }
        }
    }

    /// Takes an answer: settles the write and evaluates what waits for it.
    pub(crate) fn settle(
        &mut self,
        ticket: &Ticket,
        answer: &WriteOutcome,
        now: Timestamp,
        agenda: &mut Agenda,
    ) -> Settled {
        self.reasons.settle(ticket.id);
        let settled = self.writes.settle(ticket, answer, now);
        // At once, because the answer may change the decision; and later, when the same write is
        // allowed again.
        if let Some(at) = settled.retry_at {
            agenda.at(at, ticket.waiter.clone());
        }
        agenda.now(ticket.waiter.clone());
        // Each write is answered, so that none waits for ever, also if the object is gone by then.
        for waiter in self.waiting.remove(&ticket.target).into_iter().flatten() {
            agenda.now(waiter);
        }
        // A created copy that the watch has not shown by then is read. The read is found at each decision; this only
        // wakes.
        if matches!(answer, WriteOutcome::Done(_)) && self.writes.is_unsettled(&ticket.target) {
            agenda.at(after(now, REMOVAL_SHOWN_WITHIN), Reevaluation::Report);
        }
        settled
    }

    /// Announces this once the write that was just submitted is done.
    pub(crate) fn announce(&mut self, announcements: impl Into<Announcements>) {
        self.announcements.insert(TicketId::new(self.last_ticket), announcements.into());
    }

    /// What the write of an answer announces. One that was not done announces nothing: what it was for is decided again.
    pub(super) fn announced(&mut self, ticket: &Ticket, answer: &WriteOutcome) -> Announcements {
        let announced = self.announcements.remove(&ticket.id);
        announced.filter(|_| matches!(answer, WriteOutcome::Done(_))).unwrap_or_default()
    }

    /// Records an Event to be published.
    pub(crate) fn publish(&mut self, event: EventRecord) {
        self.events.push(event);
    }

    /// Everything that was submitted since the last call.
    pub(crate) fn take(&mut self) -> (Vec<Order>, Vec<EventRecord>) {
        (std::mem::take(&mut self.orders), std::mem::take(&mut self.events))
    }
}

fn status_difference(before: &impl Serialize, after: &impl Serialize) -> Option<Value> {
    merge_patch(&json!({ "status": before }), &json!({ "status": after }))
}
