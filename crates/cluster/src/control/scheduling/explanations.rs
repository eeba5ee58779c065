//! What pending Workloads lack, as Events and for the visibility API: computed for a few Workloads at a time, when a decision has no
//! writes that would wait for it.
//!
//! A Workload is explained when it has been refused for ten seconds. It is explained again when its condition QuotaReserved
//! changes, or a Workload of which the end would have helped has no quota any more, at most once a minute. An equal explanation
//! is not published again. Cost: the engine's, for at most [`MAX_AT_ONCE`] Workloads in a second.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crds::{
    meta::{Condition, find},
    names::{conditions::QUOTA_RESERVED, reasons, reporters},
    v1beta2::Workload,
};
use engine::{
    Engine,
    explain::{SufficientChange, admission_text},
    ids::WorkloadId,
};
use jiff::Timestamp;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

use crate::control::{
    decisions::AdmissionExplained,
    key_map::KeyMap,
    outbox::after,
    timers::Deadlines,
    workloads::{WorkloadChange, WorkloadPhase, Workloads},
};

/// Workloads that are explained at once, and in one second.
const MAX_AT_ONCE: usize = 4;

/// The pause between two times at which Workloads are explained.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a Workload is refused before it is explained: many Workloads are pending for seconds.
const STANDS_FOR: Duration = Duration::from_secs(10);

/// The pause between two explanations of one Workload.
const ONCE_IN: Duration = Duration::from_secs(60);

/// How long explanations wait for a decision without writes.
const PATIENCE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Explanations {
    of: KeyMap<Key, ExplainedReason>,
    due: Deadlines,
    /// Workloads that name the end of a Workload, by the number of that.
    named: BTreeMap<WorkloadId, BTreeSet<Key>>,
    not_before: Timestamp,
    /// What was published or withdrawn since the last decision.
    published: Vec<AdmissionExplained>,
}

/// A reason to be pending, and the last explanation.
#[derive(Debug)]
struct ExplainedReason {
    reason: String,
    message: String,
    explained_at: Option<Timestamp>,
    text: Option<Arc<str>>,
    /// The Workload of which the end would help.
    end: Option<WorkloadId>,
}

impl ExplainedReason {
    fn is(&self, condition: &Condition) -> bool {
        self.reason == condition.reason && self.message == condition.message
    }

    fn earliest(&self, now: Timestamp) -> Timestamp {
        let again = self.explained_at.map(|at| after(at, ONCE_IN));
        again.into_iter().chain([after(now, STANDS_FOR)]).max().unwrap_or(now)
    }
}

impl Explanations {
    /// Takes over the reason that a Workload shows.
    pub(super) fn observe(&mut self, change: &WorkloadChange, now: Timestamp) {
        let holds = change.phase.is_some_and(WorkloadPhase::holds_quota);
        if let Some(id) = change.id.filter(|_| !holds) {
            self.ended(id, now);
        }
        let shown = change.after.as_deref().filter(|_| {
            matches!(change.phase, Some(WorkloadPhase::Pending | WorkloadPhase::Evicted))
        });
        let Some(condition) = shown.and_then(refusal) else {
            return self.forget(&change.key);
        };
        if self.of.get(&change.key).is_some_and(|known| known.is(condition)) {
            return;
        }
        let (reason, message) = (condition.reason.clone(), condition.message.clone());
        let known = self.of.remove(&change.key);
        let (explained_at, text, end) =
            known.map_or_else(Default::default, |one| (one.explained_at, one.text, one.end));
        let new = ExplainedReason { reason, message, explained_at, text, end };
        self.due.set_no_later(&change.key, new.earliest(now));
        self.of.insert(change.key.clone(), new);
    }

    /// A Workload has no quota: explanations that name its end are old.
    fn ended(&mut self, id: WorkloadId, now: Timestamp) {
        for key in self.named.remove(&id).unwrap_or_default() {
            if let Some(one) = self.of.get_mut(&key) {
                one.end = None;
                self.due.set_no_later(&key, one.earliest(now));
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        let Some(known) = self.of.remove(key) else { return };
        self.due.set(key, None);
        self.unname(key, known.end);
        if known.text.is_some() {
            self.published.push(AdmissionExplained { workload: key.clone(), text: None });
        }
    }

    fn unname(&mut self, key: &Key, end: Option<WorkloadId>) {
        let Some(end) = end else { return };
        if let Some(keys) = self.named.get_mut(&end) {
            keys.remove(key);
            if keys.is_empty() {
                self.named.remove(&end);
            }
        }
    }

    /// When Workloads are to be explained next.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.next().map(|due| due.max(self.not_before))
    }

    /// Whether Workloads are explained in this decision.
    pub(super) fn are_due(&self, has_writes: bool, now: Timestamp) -> bool {
        let patience = if has_writes { PATIENCE } else { Duration::ZERO };
        self.next().is_some_and(|next| after(next, patience) <= now)
    }

    /// Explains Workloads that are due. Returns the Events.
    pub(super) fn explain(
        &mut self,
        engine: &mut Engine,
        workloads: &Workloads,
        now: Timestamp,
    ) -> Vec<EventRecord> {
        self.not_before = after(now, PAUSE);
        let due = self.due.take_first_reached(now, MAX_AT_ONCE);
        let events = due.iter().filter_map(|key| {
            let record = workloads.get(key).filter(|one| !one.holds_or_reserves())?;
            let (text, end) = explanation(engine, record.id()?);
            self.publish(key, text, end, now).then(|| self.event(key, record.object()))?
        });
        events.collect()
    }

    /// Keeps an explanation. Returns whether it differs from the last one.
    fn publish(
        &mut self,
        key: &Key,
        text: Option<String>,
        end: Option<WorkloadId>,
        now: Timestamp,
    ) -> bool {
        let Some(known) = self.of.get_mut(key) else { return false };
        let differs = known.text.as_deref() != text.as_deref();
        known.explained_at = Some(now);
        let former = std::mem::replace(&mut known.end, end);
        if differs {
            known.text = text.map(Into::into);
            let text = known.text.clone();
            self.published.push(AdmissionExplained { workload: key.clone(), text });
        }
        self.unname(key, former);
        if let Some(end) = end {
            self.named.entry(end).or_default().insert(key.clone());
        }
        differs
    }

    /// The Event about a new explanation.
    fn event(&self, key: &Key, workload: &Workload) -> Option<EventRecord> {
        let text = self.of.get(key)?.text.as_deref()?;
        Some(EventRecord {
            regarding: Regarding::of(workload),
            event_type: EventType::Normal,
            action: reasons::ADMISSION_EXPLAINED.to_owned(),
            reason: reasons::ADMISSION_EXPLAINED.to_owned(),
            note: text.to_owned(),
            controller: Some(reporters::SCHEDULER.to_owned()),
        })
    }

    /// What was published or withdrawn since the last call.
    pub(super) fn take(&mut self) -> Vec<AdmissionExplained> {
        std::mem::take(&mut self.published)
    }
}

/// The condition of a Workload that was refused quota.
fn refusal(workload: &Workload) -> Option<&Condition> {
    let deactivated = workload.spec.active == Some(false);
    let condition = find(&workload.status.conditions, QUOTA_RESERVED)?;
    (condition.status == "False" && !deactivated).then_some(condition)
}

/// The explanation, and the Workload of which the end would help.
fn explanation(engine: &mut Engine, id: WorkloadId) -> (Option<String>, Option<WorkloadId>) {
    let Some(explained) = engine.explain_admission(id) else { return (None, None) };
    let end = explained.changes.iter().find_map(|change| match change {
        SufficientChange::End(end) => Some(end.workload),
        _ => None,
    });
    (admission_text(engine, &explained), end)
}
