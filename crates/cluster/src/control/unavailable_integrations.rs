//! Enabled kinds of jobs that the cluster does not serve, or does not let the manager see: their Events and their series.
//!
//! Control goes on without the kind, and its jobs run without quota or stay suspended. Nothing else shows that.

use std::collections::BTreeMap;

use ::jobs::{JobObject, Kind};
use crds::names::reasons::{INTEGRATION_AVAILABLE, INTEGRATION_UNAVAILABLE};
use runtime::{
    events::{EventRecord, EventType},
    watch::{Change, Unavailable},
};

use super::{context::Context, gated_integrations::regarding_namespace, measurement::Measurement};

/// See the module. The Events regard the namespace of the manager.
#[derive(Debug)]
pub(super) struct UnavailableIntegrations {
    namespace: String,
    reasons: BTreeMap<Kind, Unavailable>,
}

impl UnavailableIntegrations {
    pub(super) fn new(namespace: String) -> Self {
        Self { namespace, reasons: BTreeMap::new() }
    }

    /// Reports whether a kind can be observed, if a change of its jobs shows another state than the one before.
    pub(super) fn observe(&mut self, kind: &Kind, change: &Change<JobObject>, ctx: &mut Context) {
        let after = match change {
            Change::Unavailable { reason, .. } => Some(*reason),
            Change::Reset { .. } => None,
            Change::Apply(_) | Change::Delete(_) => return,
        };
        let before = match after {
            Some(reason) => self.reasons.insert(kind.clone(), reason),
            None => self.reasons.remove(kind),
        };
        if before == after {
            return;
        }
        ctx.outbox.publish(self.event(kind, after));
        let series = |reason, unavailable| Measurement::IntegrationUnavailable {
            framework: kind.framework().to_owned(),
            reason: name(reason),
            unavailable,
        };
        ctx.measurements.extend(before.map(|reason| series(reason, false)));
        ctx.measurements.extend(after.map(|reason| series(reason, true)));
    }

    fn event(&self, kind: &Kind, reason: Option<Unavailable>) -> EventRecord {
        let framework = kind.framework();
        let resource = format!("{}.{}", kind.plural(), kind.api_version());
        let (event_type, event_reason, note) = match reason {
            Some(Unavailable::NotServed) => (
                EventType::Warning,
                INTEGRATION_UNAVAILABLE,
                format!(
                    "{framework} is enabled, and the cluster does not serve {resource}: such jobs are not managed"
                ),
            ),
            Some(Unavailable::Forbidden) => (
                EventType::Warning,
                INTEGRATION_UNAVAILABLE,
                format!(
                    "{framework} is enabled, and the manager may not list or watch {resource}: such jobs are not managed"
                ),
            ),
            None => (
                EventType::Normal,
                INTEGRATION_AVAILABLE,
                format!("the manager observes {resource}: jobs of {framework} are managed"),
            ),
        };
        EventRecord {
            regarding: regarding_namespace(&self.namespace),
            event_type,
            action: event_reason.to_owned(),
            reason: event_reason.to_owned(),
            note,
            controller: None,
        }
    }
}

/// The label of a series.
fn name(reason: Unavailable) -> &'static str {
    match reason {
        Unavailable::NotServed => "NotServed",
        Unavailable::Forbidden => "Forbidden",
    }
}
