//! Steps and answers of every operator in one form, so that one loop executes them.

use std::{sync::Arc, time::Duration};

use appwrapper::step::{WrapperAnswer, WrapperRefusal, WrapperStep};
use ray::{
    head::{HeadAnswer, HeadRequest},
    service::ServiceMemory,
    step::{ObjectTarget, RayAnswer, RayRefusal, RayStep},
};
use serde_json::Value;

/// A step of a decision.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PassStep {
    /// Has an answer, with which the decision is repeated.
    PassOrder(PassOrder),
    /// Belongs to the end of a pass.
    End(PassEnd),
}

/// A write, or a request to a Ray head.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PassOrder {
    Create(Value),
    /// By server-side apply.
    Apply(Value),
    /// A Secret, with a new CA.
    CreateAuthority(Value),
    Patch {
        target: ObjectTarget,
        patch: Value,
    },
    Delete {
        target: ObjectTarget,
        force: bool,
    },
    Ask(HeadRequest),
}

/// What a pass leaves.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PassEnd {
    Status(Value),
    Event { warning: bool, reason: &'static str, message: String },
    Requeue(Duration),
    Remember(ServiceMemory),
}

/// The answer to an order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OrderAnswer {
    /// The object as stored; null after a deletion.
    Done(Arc<Value>),
    Refused(Refusal),
    Head(HeadAnswer),
}

/// Why an order was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The HTTP code.
    pub(super) code: u16,
    pub(super) message: String,
    /// The API server has no such kind, or this agent does not make objects of it.
    pub(super) unknown_kind: bool,
}

impl From<RayStep> for PassStep {
    fn from(step: RayStep) -> Self {
        match step {
            RayStep::Create(object) => Self::PassOrder(PassOrder::Create(object)),
            RayStep::Apply(object) => Self::PassOrder(PassOrder::Apply(object)),
            RayStep::CreateAuthority(object) => Self::PassOrder(PassOrder::CreateAuthority(object)),
            RayStep::Patch { target, patch } => Self::PassOrder(PassOrder::Patch { target, patch }),
            RayStep::Delete(target) => Self::PassOrder(PassOrder::Delete { target, force: false }),
            RayStep::Ask(request) => Self::PassOrder(PassOrder::Ask(request)),
            RayStep::ReplaceStatus(status) => Self::End(PassEnd::Status(status)),
            RayStep::Event(event) => Self::End(PassEnd::Event {
                warning: event.warning,
                reason: event.reason,
                message: event.message,
            }),
            RayStep::RequeueAfter(after) => Self::End(PassEnd::Requeue(after)),
            RayStep::Remember(memory) => Self::End(PassEnd::Remember(memory)),
        }
    }
}

/// A step about an AppWrapper, which is `parent`.
pub(super) fn of_wrapper(parent: &Value, step: WrapperStep) -> PassStep {
    match step {
        WrapperStep::Create(object) => PassStep::PassOrder(PassOrder::Create(object)),
        WrapperStep::Patch(patch) => {
            PassStep::PassOrder(PassOrder::Patch { target: ObjectTarget::of(parent), patch })
        }
        WrapperStep::Delete { api_version, kind, name, uid, force } => {
            let target = ObjectTarget { api_version, kind, name, uid };
            PassStep::PassOrder(PassOrder::Delete { target, force })
        }
        WrapperStep::ReplaceStatus(status) => PassStep::End(PassEnd::Status(status)),
        WrapperStep::Event { reason, message } => {
            PassStep::End(PassEnd::Event { warning: false, reason, message })
        }
        WrapperStep::RequeueAfter(after) => PassStep::End(PassEnd::Requeue(after)),
    }
}

impl OrderAnswer {
    pub(super) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    pub(super) fn for_ray(&self) -> RayAnswer {
        match self {
            Self::Done(object) => RayAnswer::Done(Arc::clone(object)),
            Self::Refused(refusal) => RayAnswer::Refused(RayRefusal {
                code: refusal.code,
                message: refusal.message.clone(),
            }),
            Self::Head(answer) => RayAnswer::Head(answer.clone()),
        }
    }

    pub(super) fn for_wrapper(&self) -> WrapperAnswer {
        match self {
            Self::Done(object) => WrapperAnswer::Done((**object).clone()),
            Self::Refused(refusal) => WrapperAnswer::Refused {
                why: match refusal.code {
                    _ if refusal.unknown_kind => WrapperRefusal::UnknownKind,
                    404 => WrapperRefusal::NotFound,
                    // A webhook of another program may answer 400 for a while.
                    422 => WrapperRefusal::Invalid,
                    _ => WrapperRefusal::Other,
                },
                message: refusal.message.clone(),
            },
            // An AppWrapper asks no head.
            Self::Head(_) => WrapperAnswer::Done(Value::Null),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_codes_of_a_refusal_422_alone_is_final() {
        let why = |code: u16, unknown_kind: bool| {
            let refusal = Refusal { code, message: String::new(), unknown_kind };
            match OrderAnswer::Refused(refusal).for_wrapper() {
                WrapperAnswer::Refused { why, .. } => Some(why),
                WrapperAnswer::Done(_) => None,
            }
        };
        assert_eq!(why(422, false), Some(WrapperRefusal::Invalid));
        assert_eq!(why(404, true), Some(WrapperRefusal::UnknownKind));
        assert_eq!(why(404, false), Some(WrapperRefusal::NotFound));
        for code in [400, 403, 409, 413, 500] {
            assert_eq!(why(code, false), Some(WrapperRefusal::Other), "{code}");
        }
    }
}
