//! What every machine may use while it handles an input or decides: the time, the agenda and the outbox.

use jiff::Timestamp;
use kube::core::ApiResource;
use runtime::{watch::Key, write::Write, writer::WriteOutcome};

use super::{
    measurement::Measurement,
    outbox::{Intent, Outbox, Purpose, Settled, Stamp, Subject, Target, Ticket},
    timers::{Agenda, Reevaluation},
};

/// The time, the agenda and the outbox of a composition. A composition owns one and sets the time at each input and decision.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) now: Timestamp,
    pub(crate) agenda: Agenda,
    pub(crate) outbox: Outbox,
    /// What was measured since the last decision.
    pub(crate) measurements: Vec<Measurement>,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            now: Timestamp::MIN,
            agenda: Agenda::default(),
            outbox: Outbox::default(),
            measurements: Vec::new(),
        }
    }
}

impl Context {
    /// Whether an object, as it was last observed, may be written now. If not, `waiter` is evaluated when it may.
    pub(crate) fn free_or_wait(
        &mut self,
        target: &Target,
        current: &Stamp,
        waiter: &Reevaluation,
    ) -> bool {
        let is_free = self.outbox.writes().is_free(target, current, self.now);
        if !is_free {
            self.outbox.await_turn(target, waiter, &mut self.agenda);
        }
        is_free
    }

    /// Reads an object that is not watched by its name, once at a time: the answer is a consistent list of at most one. Returns
    /// whether a read was sent. `waiter` is evaluated after an answer that is still awaited.
    pub(crate) fn read_owner(
        &mut self,
        resource: &ApiResource,
        key: &Key,
        waiter: Reevaluation,
    ) -> bool {
        let (api_version, kind) = (resource.api_version.as_str(), resource.kind.as_str());
        let subject = Subject::Owner { api_version: api_version.into(), kind: kind.into() };
        let (target, base) = (Target::home(subject, key), Stamp::default());
        if !self.free_or_wait(&target, &base, &waiter) {
            return false;
        }
        let intent = Intent { target, purpose: Purpose::Owner, base, waiter };
        self.outbox.submit(intent, |purpose, key| Write::of(purpose, resource).list_one(key, ""))
    }

    /// Settles the write of an answer, announces what it was for, and evaluates what waits for it.
    pub(crate) fn settle(&mut self, ticket: &Ticket, answer: &WriteOutcome) -> Settled {
        let announced = self.outbox.announced(ticket, answer);
        announced.events.into_iter().for_each(|event| self.outbox.publish(event));
        self.measurements.extend(announced.measurements);
        self.outbox.settle(ticket, answer, self.now, &mut self.agenda)
    }
}
