//! An AppWrapper while a decision is made: its objects and pods, and the status that is being written.

use std::{collections::BTreeMap, collections::BTreeSet, time::Duration};

use crds::{
    go_duration,
    meta::{Condition, is_controlled_by},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::{
    component::component_name,
    json::{annotation, items, label, name},
    names::{self, ANNOTATION_PREFIX},
    phase::WrapperPhase,
    settings::{FaultTolerance, WrapperSettings},
    v1beta2::{AppWrapperSpec, AppWrapperStatus},
};

/// What a decision reads beside the objects.
#[derive(Clone, Debug)]
pub struct WrapperFacts {
    /// Now.
    pub now: Timestamp,
    /// Nodes that pods must leave, with the resources of which they are the reason.
    pub evicted_nodes: BTreeMap<String, BTreeSet<String>>,
}

/// An AppWrapper while a decision is made.
pub(crate) struct WrapperState<'a> {
    pub(crate) wrapper: &'a Value,
    pub(crate) spec: &'a AppWrapperSpec,
    pub(crate) children: &'a [&'a Value],
    pub(crate) facts: &'a WrapperFacts,
    pub(crate) settings: &'a WrapperSettings,
    pub(crate) status: AppWrapperStatus,
}

impl<'a> WrapperState<'a> {
    pub(crate) fn now(&self) -> Timestamp {
        self.facts.now
    }

    pub(crate) fn limits(&self) -> &'a FaultTolerance {
        &self.settings.fault_tolerance
    }

    pub(crate) fn enter(&mut self, phase: &WrapperPhase) {
        phase.as_str().clone_into(&mut self.status.phase);
    }

    /// The pods of the AppWrapper, by their label.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &'a Value> {
        let wanted = name(self.wrapper);
        // By the label, because the owners of pods are the components or their children.
        let of_wrapper = move |pod: &&Value| label(pod, names::WRAPPER_LABEL) == wanted;
        self.children.iter().copied().filter(|child| child["kind"] == "Pod").filter(of_wrapper)
    }

    /// The object with the kind and the name of a component, also one of another controller.
    pub(crate) fn object_named_as(&self, index: usize) -> Option<&'a Value> {
        let template = &self.spec.components.get(index)?.template;
        let wanted = component_name(self.wrapper, index, template);
        self.children.iter().copied().find(|child| {
            child["kind"] == template["kind"]
                && child["apiVersion"] == template["apiVersion"]
                && name(child) == wanted
        })
    }

    /// The object of a component, if it is there.
    pub(crate) fn object_of(&self, index: usize) -> Option<&'a Value> {
        let is_its = |object: &&Value| self.owns(object) || self.has_left(index, object);
        self.object_named_as(index).filter(is_its)
    }

    /// Whether an object is a component that has lost its controller, as a deletion with the propagation Orphan leaves it.
    ///
    /// The label says a name alone: the status, which belongs to one AppWrapper, says that this one made an object here.
    fn has_left(&self, index: usize, object: &Value) -> bool {
        self.is_deployed(index)
            && label(object, names::WRAPPER_LABEL) == name(self.wrapper)
            && !items(&object["metadata"]["ownerReferences"]).iter().any(is_controller)
    }

    /// Whether the status says that the object of a component was made.
    pub(crate) fn is_deployed(&self, index: usize) -> bool {
        let status = self.status.component_status.get(index);
        status.is_some_and(|it| crds::meta::is_true(&it.conditions, names::RESOURCES_DEPLOYED))
    }

    /// Whether the AppWrapper is the controller of an object. Others are not its to delete.
    pub(crate) fn owns(&self, object: &Value) -> bool {
        is_controlled_by(object, self.wrapper)
    }

    pub(crate) fn is_true(&self, kind: &str) -> bool {
        crds::meta::is_true(&self.status.conditions, kind)
    }

    /// Sets a condition.
    pub(crate) fn set(&mut self, kind: &str, is_true: bool, reason: &str, message: &str) {
        let status = if is_true { "True" } else { "False" };
        set_condition(&mut self.status.conditions, self.facts.now, [kind, status, reason, message]);
    }

    /// Makes a condition false that is true.
    pub(crate) fn clear(&mut self, kind: &str, reason: &str, message: &str) {
        if self.is_true(kind) {
            self.set(kind, false, reason, message);
        }
    }

    /// How long a condition has had its status; none if it is not there.
    pub(crate) fn age(&self, kind: &str) -> Option<Duration> {
        let condition = self.status.conditions.iter().find(|one| one.r#type == kind)?;
        let since = condition.last_transition_time.as_ref()?.0;
        // A clock that goes back must not end a period.
        Some(self.now().duration_since(since).max(SignedDuration::ZERO).unsigned_abs())
    }

    /// What is left of a period that began with a condition.
    pub(crate) fn remaining(&self, kind: &str, period: Duration) -> Option<Duration> {
        // Without the condition there is no begin, and the period counts as over.
        let age = self.age(kind).unwrap_or(period);
        period.checked_sub(age).filter(|left| !left.is_zero())
    }

    /// A duration of an annotation, within its ceiling; the default if it is missing or no duration. One below zero is over at once.
    pub(crate) fn period(&self, annotation_name: &str, default: Duration) -> Duration {
        let text = annotation(self.wrapper, &format!("{ANNOTATION_PREFIX}{annotation_name}"));
        let given = go_duration::parse_signed(text)
            .map(|signed| Duration::try_from(signed).unwrap_or_default());
        given.unwrap_or(default).min(self.limits().grace_ceiling)
    }

    /// The integers of an annotation, between commas without spaces.
    pub(crate) fn codes(&self, annotation_name: &str) -> Vec<i64> {
        let text = annotation(self.wrapper, &format!("{ANNOTATION_PREFIX}{annotation_name}"));
        text.split(',').filter_map(|code| code.parse().ok()).collect()
    }
}

fn is_controller(owner: &Value) -> bool {
    owner["controller"] == true
}

/// Sets a condition: type, status, reason and message. The time changes with the status only.
pub(crate) fn set_condition(conditions: &mut Vec<Condition>, now: Timestamp, texts: [&str; 4]) {
    let [kind, status, reason, message] = texts;
    let present = conditions.iter_mut().find(|condition| condition.r#type == kind);
    let same = present.as_ref().filter(|condition| condition.status == status);
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let since = same.and_then(|condition| condition.last_transition_time.clone());
    let condition = Condition {
        last_transition_time: Some(since.unwrap_or(Time(now))),
        message: message.to_owned(),
        observed_generation: 0,
        reason: reason.to_owned(),
        status: status.to_owned(),
        r#type: kind.to_owned(),
    };
    match present {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}
