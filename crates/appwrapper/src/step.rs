//! What a decision about an AppWrapper asks for, the answers, and the pass that collects both.
//!
//! A pass is repeated with the same objects and time until no order is without an answer, as in `ray`.

use std::{slice, time::Duration};

use serde_json::Value;

/// One step of a decision. The caller takes the steps in order and stops at the first that is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum WrapperStep {
    /// Creates an object. The answer is the object as stored.
    Create(Value),
    /// Applies a JSON merge patch to the AppWrapper. The answer is the object as stored.
    Patch(Value),
    /// Deletes an object: at once if it is forced, a Deployment after its pods, any other object before what it owns. An object that is not
    /// there counts as deleted.
    Delete {
        /// The `apiVersion`.
        api_version: String,
        /// The kind.
        kind: String,
        /// The name.
        name: String,
        /// The uid, as a precondition of the write.
        uid: String,
        /// Whether its pods get no time to end.
        force: bool,
    },
    /// Replaces the status of the AppWrapper. The write carries the version of the AppWrapper that the pass last saw.
    ReplaceStatus(Value),
    /// Publishes a normal event about the AppWrapper.
    Event {
        /// For programs.
        reason: &'static str,
        /// The human-readable message.
        message: String,
    },
    /// Decides again after this time, if nothing changes before.
    RequeueAfter(Duration),
}

/// The answer to a step that writes.
#[derive(Clone, Debug, PartialEq)]
pub enum WrapperAnswer {
    /// The object as stored; null after a deletion.
    Done(Value),
    /// The write was refused.
    Refused {
        /// Why.
        why: WrapperRefusal,
        /// The human-readable message.
        message: String,
    },
}

/// Why a write was refused, as far as decisions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrapperRefusal {
    /// The API server has no such kind.
    UnknownKind,
    /// The object is invalid.
    Invalid,
    /// The object is not there.
    NotFound,
    /// Anything else, which may pass.
    Other,
}

impl WrapperRefusal {
    /// Whether another attempt would be refused, too.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::UnknownKind | Self::Invalid)
    }
}

impl WrapperStep {
    /// Whether the step writes, so that its answer belongs to the next call.
    #[must_use]
    pub fn is_order(&self) -> bool {
        matches!(self, Self::Create(_) | Self::Patch(_) | Self::Delete { .. })
    }
}

/// The collected steps of a pass.
pub(crate) struct WrapperPass<'a> {
    answers: slice::Iter<'a, WrapperAnswer>,
    orders: Vec<WrapperStep>,
    notes: Vec<WrapperStep>,
}

impl<'a> WrapperPass<'a> {
    pub(crate) fn new(answers: &'a [WrapperAnswer]) -> Self {
        Self { answers: answers.iter(), orders: Vec::new(), notes: Vec::new() }
    }

    /// Asks for a write; none if it is not answered yet.
    pub(crate) fn order(&mut self, step: WrapperStep) -> Option<&'a WrapperAnswer> {
        let answer = self.answers.next();
        if answer.is_none() {
            self.orders.push(step);
        }
        answer
    }

    pub(crate) fn note(&mut self, step: WrapperStep) {
        self.notes.push(step);
    }

    /// Whether an order waits for its answer.
    pub(crate) fn is_pending(&self) -> bool {
        !self.orders.is_empty()
    }

    /// The orders without an answer; without such an order the rest.
    pub(crate) fn finish(self) -> Vec<WrapperStep> {
        if self.orders.is_empty() { self.notes } else { self.orders }
    }
}
