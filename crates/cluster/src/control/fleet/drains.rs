//! Drains by annotations of MultiKueueClusters, and the condition about annotations without a meaning.
//!
//! They hold beside those of DispatchPolicies (docs/reference/dispatch.md §3): a cluster is drained if either says so, and the earlier
//! deadline counts.

use std::{collections::BTreeMap, sync::Arc};

use crds::{
    meta::{Condition, find},
    names::{conditions::DRAIN_INVALID, reasons::INVALID_DRAIN},
    v1beta2::MultiKueueCluster,
    worker_drain::{DrainParseFailure, WorkerDrain},
};
use dispatch::{Fleet, PlacementPolicy};
use index::status::StatusStamp;
use jiff::Timestamp;
use runtime::events::{EventRecord, EventType, Regarding};

use crate::control::{
    context::Context,
    key_map::KeyMap,
    time::engine_time,
    timers::{Agenda, Reevaluation},
};

/// The drains that annotations of MultiKueueClusters ask for.
#[derive(Debug, Default)]
pub(super) struct WorkerDrains {
    asked: KeyMap<Box<str>, Result<WorkerDrain, DrainParseFailure>>,
    /// Clusters with a window that was open at the last look, with their deadline.
    held: BTreeMap<Box<str>, Option<Timestamp>>,
}

impl WorkerDrains {
    /// Records the annotations of a MultiKueueCluster. It drains nothing before [`Self::advance`].
    pub(super) fn observe(
        &mut self,
        name: &str,
        object: Option<&Arc<MultiKueueCluster>>,
        ctx: &mut Context,
    ) {
        let asked = object.and_then(|object| WorkerDrain::read(&object.metadata).transpose());
        if let (Some(object), Some(Err(failure))) = (object, &asked) {
            let known = find(&object.status.conditions, DRAIN_INVALID)
                .is_some_and(|one| one.message == failure.to_string());
            // Another process has published it where the condition is written.
            if !known && self.asked.get(name) != asked.as_ref() {
                ctx.outbox.publish(invalid_drain(object, failure));
            }
        }
        match asked {
            Some(asked) => self.asked.insert(name.into(), asked),
            None => self.asked.remove(name),
        };
    }

    /// Looks at the windows. Returns whether other drains hold than before, or with other deadlines.
    pub(super) fn advance(&mut self, now: Timestamp, agenda: &mut Agenda) -> bool {
        let valid =
            || self.asked.iter().filter_map(|(name, asked)| Some((name, asked.as_ref().ok()?)));
        for change in valid().filter_map(|(_, drain)| drain.window.next_change(now)) {
            agenda.at(change, Reevaluation::Clusters);
        }
        let open = valid().filter(|(_, drain)| drain.window.holds(now));
        let held = open.map(|(name, drain)| (name.clone(), drain.deadline)).collect();
        let before = std::mem::replace(&mut self.held, held);
        before != self.held
    }

    /// Adds the drains that hold to those of a policy.
    pub(super) fn apply(&self, policy: &mut PlacementPolicy, fleet: &Fleet) {
        // A drain is that of a registration, which has interned the name.
        let held = self.held.iter().filter_map(|(name, at)| Some((fleet.find(name)?, at)));
        for (cluster, deadline) in held {
            policy.drain(cluster, deadline.map(engine_time));
        }
    }

    /// Sets or removes the condition of a MultiKueueCluster.
    pub(super) fn set_condition(
        &self,
        name: &str,
        conditions: &mut Vec<Condition>,
        at: StatusStamp,
    ) {
        match self.asked.get(name) {
            Some(Err(failure)) => {
                let message = failure.to_string();
                index::status::set_for_generation(
                    conditions,
                    index::status::NewCondition {
                        kind: DRAIN_INVALID,
                        status: true,
                        reason: INVALID_DRAIN,
                        message: &message,
                    },
                    at,
                );
            }
            Some(Ok(_)) | None => conditions.retain(|one| one.r#type != DRAIN_INVALID),
        }
    }
}

fn invalid_drain(object: &MultiKueueCluster, failure: &DrainParseFailure) -> EventRecord {
    EventRecord {
        regarding: Regarding::of(object),
        event_type: EventType::Warning,
        action: INVALID_DRAIN.to_owned(),
        reason: INVALID_DRAIN.to_owned(),
        note: failure.to_string(),
        controller: None,
    }
}
