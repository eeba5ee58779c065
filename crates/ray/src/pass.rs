//! One pass of a decision: orders, their answers, and what follows from them.
//!
//! A pass is repeated with the same objects and time until no order is without an answer. Each time it takes the same course, so
//! that the n-th answer belongs to the n-th order. Events, status and time of the next pass go out at the end only.

use std::{slice, time::Duration};

use serde_json::Value;

use crate::{
    head::{HeadAnswer, HeadRequest},
    service::ServiceMemory,
    step::{ObjectTarget, RayAnswer, RayEvent, RayRefusal, RayStep},
};

/// When an object is looked at again after a change or a refused write.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// The collected steps of a pass.
pub(crate) struct Pass<'a> {
    answers: slice::Iter<'a, RayAnswer>,
    orders: Vec<RayStep>,
    notes: Vec<RayStep>,
}

/// What is known of an order.
pub(crate) enum OrderOutcome<'a> {
    /// It is not answered yet.
    Pending,
    /// The object as stored.
    Done(&'a Value),
    /// The API server refused.
    Refused(&'a RayRefusal),
}

impl<'a> Pass<'a> {
    pub(crate) fn new(answers: &'a [RayAnswer]) -> Self {
        Self { answers: answers.iter(), orders: Vec::new(), notes: Vec::new() }
    }

    /// Asks for a write.
    pub(crate) fn order(&mut self, step: RayStep) -> OrderOutcome<'a> {
        self.order_with(|| step)
    }

    /// Asks for a write, which is made only while it has no answer: a pass may make a thousand pods.
    pub(crate) fn order_with(&mut self, step: impl FnOnce() -> RayStep) -> OrderOutcome<'a> {
        match self.answers.next() {
            Some(RayAnswer::Done(object)) => OrderOutcome::Done(object),
            Some(RayAnswer::Refused(refusal)) => OrderOutcome::Refused(refusal),
            // Answers belong to orders by their place: one of another sort is that of no write.
            Some(RayAnswer::Head(_)) | None => {
                self.orders.push(step());
                OrderOutcome::Pending
            }
        }
    }

    /// Asks a Ray head. Returns `None` while the request is on its way.
    pub(crate) fn ask(&mut self, request: HeadRequest) -> Option<&'a HeadAnswer> {
        match self.answers.next() {
            Some(RayAnswer::Head(answer)) => Some(answer),
            Some(RayAnswer::Done(_) | RayAnswer::Refused(_)) | None => {
                self.orders.push(RayStep::Ask(request));
                None
            }
        }
    }

    /// Asks for the deletion of an object. An object that is gone counts as deleted.
    pub(crate) fn delete(&mut self, object: &Value) -> OrderOutcome<'a> {
        match self.order(RayStep::Delete(ObjectTarget::of(object))) {
            // The children are read from a cache, which may not show the deletion yet.
            OrderOutcome::Refused(refusal) if refusal.is_not_found() => {
                OrderOutcome::Done(&Value::Null)
            }
            outcome => outcome,
        }
    }

    pub(crate) fn normal(&mut self, reason: &'static str, message: String) {
        self.notes.push(RayStep::Event(RayEvent { warning: false, reason, message }));
    }

    pub(crate) fn warning(&mut self, reason: &'static str, message: String) {
        self.notes.push(RayStep::Event(RayEvent { warning: true, reason, message }));
    }

    pub(crate) fn status(&mut self, status: Value) {
        self.notes.push(RayStep::ReplaceStatus(status));
    }

    pub(crate) fn remember(&mut self, memory: ServiceMemory) {
        self.notes.push(RayStep::Remember(memory));
    }

    pub(crate) fn requeue(&mut self, after: Duration) {
        self.notes.push(RayStep::RequeueAfter(after));
    }

    /// Whether an order waits for its answer.
    pub(crate) fn is_pending(&self) -> bool {
        !self.orders.is_empty()
    }

    /// The orders without an answer; without such an order the rest.
    pub(crate) fn finish(self) -> Vec<RayStep> {
        if self.orders.is_empty() { self.notes } else { self.orders }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_answered_is_not_made_again() {
        let answers = [RayAnswer::Done(Value::Null.into())];
        let mut pass = Pass::new(&answers);
        let mut n_made = 0;
        for _ in 0..3 {
            pass.order_with(|| {
                n_made += 1;
                RayStep::Create(Value::Null)
            });
        }
        assert_eq!((n_made, pass.finish().len()), (2, 2));
    }
}
