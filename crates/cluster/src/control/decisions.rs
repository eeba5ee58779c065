//! What a composition of machines promises, and what it decides.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use runtime::{events::EventRecord, watch::Key, writer::WriteOutcome};

use super::{
    fleet::ConnectionPlans,
    measurement::Measurement,
    outbox::{Order, Ticket},
};

/// A composition of machines that decides about one cluster.
///
/// Contract: implementors neither wait, nor read a clock, nor do IO; all time comes from `now`. The
/// caller sends every order of [`Decisions`] exactly once and brings the answer back by its ticket, also if that is
/// [`WriteOutcome::Unknown`]. The same inputs give the same decisions.
///
/// ```ignore
/// control.observe(ManagerInput::Workload(change), now);
/// let decisions = control.decide(now);
/// for order in decisions.orders {
///     let answer = writer.send(order.write).await;
///     control.answered(&order.ticket, answer, now);
/// }
/// ```
pub trait Control: Send + 'static {
    /// What it observes.
    type Input: Send + 'static;

    /// Records an input. Decides nothing.
    fn observe(&mut self, input: Self::Input, now: Timestamp);

    /// Records the answer to an order. Decides nothing.
    fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp);

    /// The clock that `now` comes from jumped by so much. Times that were counted since then are moved along: what lasts is
    /// counted as if the clock had run steadily.
    fn clock_jumped(&mut self, _by: SignedDuration) {}

    /// Decides what follows from everything that was recorded.
    fn decide(&mut self, now: Timestamp) -> Decisions;

    /// What it knows of queues and quota, line by line, for a person that looks for a fault.
    fn dump(&self) -> String;
}

/// What follows from a decision.
#[derive(Debug, Default)]
pub struct Decisions {
    /// Writes.
    pub orders: Vec<Order>,
    /// Events.
    pub events: Vec<EventRecord>,
    /// What happened since the last decision.
    pub measurements: Vec<Measurement>,
    /// Explanations of pending Workloads that are new, or hold no longer.
    pub explained: Vec<AdmissionExplained>,
    /// The connections to workers that are wanted; `None` before anything is decided.
    pub connections: Option<Arc<ConnectionPlans>>,
    /// When to decide again, if nothing is observed before.
    pub wake: Option<Timestamp>,
}

/// What a pending Workload lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionExplained {
    /// The Workload.
    pub workload: Key,
    /// The explanation; `None` if there is none any more.
    pub text: Option<Arc<str>>,
}
