//! Enabled kinds of jobs that the cluster does not serve, or does not let the manager see: their Events and their series.
//!
//! Control goes on without the kind, and its jobs run without quota or stay suspended. Nothing else shows that.

use std::{collections::BTreeMap, time::Duration};

use ::jobs::{JobObject, Kind, Kinds};
use crds::names::reasons::{INTEGRATION_AVAILABLE, INTEGRATION_UNAVAILABLE};
use jiff::Timestamp;
use runtime::{
    events::{EventRecord, EventType},
    watch::{Change, Unavailable},
};

use super::{
    context::Context, gated_integrations::namespace_event, measurement::Measurement,
    outbox::after as later, timers::Reevaluation,
};

/// How long a kind is unavailable before an Event says so: an API server that starts refuses requests for a moment.
const GRACE: Duration = Duration::from_secs(30);

/// The enabled kinds of jobs that cannot be watched. The Events regard the namespace of the manager.
#[derive(Debug)]
pub(super) struct UnavailableIntegrations {
    namespace: String,
    by_kind: BTreeMap<Kind, UnavailableIntegration>,
}

#[derive(Debug)]
struct UnavailableIntegration {
    reason: Unavailable,
    since: Timestamp,
    /// The reason that the last Event had.
    reported: Option<Unavailable>,
}

impl UnavailableIntegrations {
    pub(super) fn new(namespace: String) -> Self {
        Self { namespace, by_kind: BTreeMap::new() }
    }

    /// Records whether a kind can be observed, if a change of its jobs shows that. The series follow at once.
    pub(super) fn observe(&mut self, kind: &Kind, change: &Change<JobObject>, ctx: &mut Context) {
        let after = match change {
            Change::Unavailable { reason, .. } => Some(*reason),
            Change::Reset { .. } => None,
            Change::Apply(_) | Change::Delete(_) => return,
        };
        let known = self.by_kind.get(kind);
        let (before, reported) = (known.map(|one| one.reason), known.and_then(|one| one.reported));
        if before == after {
            return;
        }
        match after {
            Some(reason) => self.begin(kind, reason, reported, ctx),
            None => self.end(kind, ctx),
        }
        let series = |reason, unavailable| Measurement::IntegrationUnavailable {
            framework: kind.framework().to_owned(),
            reason: name(reason),
            unavailable,
        };
        ctx.measurements.extend(before.map(|reason| series(reason, false)));
        ctx.measurements.extend(after.map(|reason| series(reason, true)));
    }

    fn begin(
        &mut self,
        kind: &Kind,
        reason: Unavailable,
        reported: Option<Unavailable>,
        ctx: &mut Context,
    ) {
        let one = UnavailableIntegration { reason, since: ctx.now, reported };
        self.by_kind.insert(kind.clone(), one);
        // It only wakes: what is due is found at each decision.
        ctx.agenda.at(later(ctx.now, GRACE), Reevaluation::Report);
    }

    fn end(&mut self, kind: &Kind, ctx: &mut Context) {
        let ended = self.by_kind.remove(kind);
        if ended.is_some_and(|one| one.reported.is_some()) {
            ctx.outbox.publish(event(&self.namespace, kind, None));
        }
    }

    /// Publishes an Event about each kind that has been unavailable for a while.
    pub(super) fn report(&mut self, ctx: &mut Context) {
        let now = ctx.now;
        for (kind, one) in self.by_kind.iter_mut().filter(|(_, one)| one.is_due(now)) {
            one.reported = Some(one.reason);
            ctx.outbox.publish(event(&self.namespace, kind, one.reported));
        }
    }
}

fn event(namespace: &str, kind: &Kind, reason: Option<Unavailable>) -> EventRecord {
    let framework = kind.framework();
    let resource = format!("{}.{}", kind.plural(), kind.api_version());
    let (what, note) = match reason {
        Some(Unavailable::NotServed) => (
            (type_if_not_served(kind), INTEGRATION_UNAVAILABLE),
            format!(
                "{framework} is enabled, and the cluster does not serve {resource}: such jobs are not managed"
            ),
        ),
        Some(Unavailable::Forbidden) => (
            (EventType::Warning, INTEGRATION_UNAVAILABLE),
            format!(
                "{framework} is enabled, and the manager may not list or watch {resource}: such jobs are not managed"
            ),
        ),
        None => (
            (EventType::Normal, INTEGRATION_AVAILABLE),
            format!("the manager observes {resource}: jobs of {framework} are managed"),
        ),
    };
    namespace_event(namespace, what, note)
}

/// A configuration that is shipped names built-in kinds that some clusters do not have. A kind that is defined beside them is meant
/// for this cluster.
fn type_if_not_served(kind: &Kind) -> EventType {
    match Kinds::built_in().of_framework(kind.framework()) {
        Some(_) => EventType::Normal,
        None => EventType::Warning,
    }
}

impl UnavailableIntegration {
    /// Whether an Event is missing. A clock that was set back shortens the time.
    fn is_due(&self, now: Timestamp) -> bool {
        let waits = self.since <= now && now < later(self.since, GRACE);
        self.reported != Some(self.reason) && !waits
    }
}

/// The label of a series.
fn name(reason: Unavailable) -> &'static str {
    match reason {
        Unavailable::NotServed => "NotServed",
        Unavailable::Forbidden => "Forbidden",
    }
}
