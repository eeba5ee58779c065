//! What pending Workloads lack, as Events and for the visibility API: computed for one Workload in a decision, when that has no
//! writes that would wait for it.
//!
//! A Workload is explained when it has been refused for ten seconds. It is explained again when its condition QuotaReserved
//! changes, or a Workload of which the end would have helped has no quota any more, at most once a minute. An equal explanation
//! is not published again. A text ends with its reason, and what the condition says already is not explained. Among Workloads of
//! one queue with an equal condition one is explained early and the others after all others.
//! Cost: the engine's, for at most one Workload in a [`MIN_INTERVAL`].

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
    explain::{QueueingStatus, SufficientChange, admission_text},
    ids::WorkloadId,
};
use index::GATED_BY;
use jiff::{SignedDuration, Timestamp};
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

use crate::control::{
    decisions::AdmissionExplained,
    key_map::KeyMap,
    outbox::after,
    time::moved,
    timers::Deadlines,
    workloads::{WorkloadChange, WorkloadPhase, Workloads},
};

/// The pause between two explanations.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// How long a Workload is refused before it is explained: many Workloads are pending for seconds.
const EXPLAIN_AFTER: Duration = Duration::from_secs(10);

/// The pause between two explanations of one Workload.
const EXPLAIN_PERIOD: Duration = Duration::from_secs(60);

/// How long explanations wait for a decision without writes.
const MAX_DEFERRAL: Duration = Duration::from_secs(10);

/// The explanations of pending Workloads, and when the next ones are due.
#[derive(Debug, Default)]
pub(crate) struct Explanations {
    of: KeyMap<Key, ExplainedReason>,
    /// The first Workload of each group, by namespace and group.
    first: BTreeMap<(Option<Arc<str>>, Arc<PendingGroup>), Key>,
    /// When these are explained.
    deadlines_of_first: Deadlines,
    /// When the others are explained: after the first ones.
    deadlines_of_others: Deadlines,
    /// Workloads with an explanation that names the end of another one, by the id of that.
    waiting_for_end_of: BTreeMap<WorkloadId, BTreeSet<Key>>,
    not_before: Timestamp,
    /// What was published or withdrawn since the last decision.
    published: Vec<AdmissionExplained>,
}

/// A reason to be pending, and the last explanation.
#[derive(Debug)]
struct ExplainedReason {
    /// Its LocalQueue, with reason and message of the condition: mostly those of equal Workloads, which share it.
    group: Arc<PendingGroup>,
    /// The condition says everything: the Workload is not explained.
    condition_suffices: bool,
    explained_at: Option<Timestamp>,
    /// The text that is shown.
    text: Option<Arc<str>>,
    /// The text of the last Event.
    announced: Option<Arc<str>>,
    /// The Workload of which the end would help.
    end: Option<WorkloadId>,
}

/// LocalQueue, reason and message.
type PendingGroup = (String, String, String);

impl ExplainedReason {
    fn earliest(&self, now: Timestamp) -> Timestamp {
        let stands = after(now, EXPLAIN_AFTER);
        self.explained_at.map_or(stands, |at| stands.max(after(at, EXPLAIN_PERIOD)))
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
        let Some((workload, condition)) = shown.and_then(refusal) else {
            return self.forget(&change.key);
        };
        let of_group = (&workload.spec.queue_name, &condition.reason, &condition.message);
        let is_known = self.of.get(&change.key).is_some_and(|known| {
            let (queue, reason, message) = &*known.group;
            (queue, reason, message) == of_group
        });
        if !is_known {
            let (queue, reason, message) = of_group;
            let group = (queue.clone(), reason.clone(), message.clone());
            let group = self.shared_group(&change.key, group);
            self.change(&change.key, group, condition_suffices(condition), now);
        }
    }

    /// The group as the first Workload of it keeps it.
    fn shared_group(&self, key: &Key, group: PendingGroup) -> Arc<PendingGroup> {
        let wanted = (key.namespace.clone(), Arc::new(group));
        let known = self.first.get_key_value(&wanted).map(|((_, known), _)| Arc::clone(known));
        known.unwrap_or(wanted.1)
    }

    fn change(
        &mut self,
        key: &Key,
        group: Arc<PendingGroup>,
        condition_suffices: bool,
        now: Timestamp,
    ) {
        let Some(known) = self.of.get_mut(key) else {
            let new = ExplainedReason {
                group,
                condition_suffices,
                explained_at: None,
                text: None,
                announced: None,
                end: None,
            };
            self.of.insert(key.clone(), new);
            return self.schedule(key, after(now, EXPLAIN_AFTER));
        };
        let other_reason = known.group.1 != group.1;
        let former = std::mem::replace(&mut known.group, group);
        known.condition_suffices = condition_suffices;
        let earliest = known.earliest(now);
        // What is missing for another reason is not known yet.
        if other_reason {
            // Replicas that do not lead drop the text as well, so an equal one needs an Event.
            known.announced = None;
            if known.text.take().is_some() {
                self.published.push(AdmissionExplained { workload: key.clone(), text: None });
            }
        }
        self.leave_group(key, &former);
        self.schedule(key, earliest);
    }

    /// Has a Workload explained at this time or earlier: the first one of its group before others.
    fn schedule(&mut self, key: &Key, at: Timestamp) {
        let Some(one) = self.of.get(key) else { return };
        let known = [&self.deadlines_of_first, &self.deadlines_of_others]
            .into_iter()
            .find_map(|all| all.at(key));
        let at = (!one.condition_suffices).then(|| known.map_or(at, |known| known.min(at)));
        let group = (key.namespace.clone(), Arc::clone(&one.group));
        let first = at.is_some() && self.first.entry(group).or_insert_with(|| key.clone()) == key;
        self.deadlines_of_first.set(key, at.filter(|_| first));
        self.deadlines_of_others.set(key, at.filter(|_| !first));
    }

    /// A Workload that is not explained with its group any more is not the first one of it.
    fn leave_group(&mut self, key: &Key, group: &Arc<PendingGroup>) {
        let group = (key.namespace.clone(), Arc::clone(group));
        if self.first.get(&group) == Some(key) {
            self.first.remove(&group);
        }
    }

    /// A Workload has no quota: explanations that name its end are old.
    fn ended(&mut self, id: WorkloadId, now: Timestamp) {
        for key in self.waiting_for_end_of.remove(&id).unwrap_or_default() {
            if let Some(one) = self.of.get_mut(&key) {
                one.end = None;
                let earliest = one.earliest(now);
                self.schedule(&key, earliest);
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        let Some(known) = self.of.remove(key) else { return };
        self.deadlines_of_first.set(key, None);
        self.deadlines_of_others.set(key, None);
        self.leave_group(key, &known.group);
        self.remove_from_waiting(key, known.end);
        if known.text.is_some() {
            self.published.push(AdmissionExplained { workload: key.clone(), text: None });
        }
    }

    fn remove_from_waiting(&mut self, key: &Key, end: Option<WorkloadId>) {
        let Some(end) = end else { return };
        if let Some(keys) = self.waiting_for_end_of.get_mut(&end) {
            keys.remove(key);
            if keys.is_empty() {
                self.waiting_for_end_of.remove(&end);
            }
        }
    }

    /// When a Workload is to be explained next.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let next = [&self.deadlines_of_first, &self.deadlines_of_others]
            .into_iter()
            .filter_map(Deadlines::next)
            .min();
        next.map(|due| due.max(self.not_before))
    }

    /// Whether a Workload is explained in this decision.
    pub(super) fn are_due(&self, has_writes: bool, now: Timestamp) -> bool {
        let deferral = if has_writes { MAX_DEFERRAL } else { Duration::ZERO };
        self.next().is_some_and(|next| after(next, deferral) <= now)
    }

    /// Explains a Workload that is due. Returns the Event.
    pub(super) fn explain(
        &mut self,
        engine: &mut Engine,
        workloads: &Workloads,
        now: Timestamp,
    ) -> Option<EventRecord> {
        self.not_before = after(now, MIN_INTERVAL);
        let first = self.deadlines_of_first.take_first_reached(now);
        let key = first.or_else(|| self.deadlines_of_others.take_first_reached(now))?;
        let record = workloads.get(&key)?;
        let id = record.id().filter(|_| !record.holds_or_reserves());
        let (text, end) = id.map(|id| explanation(engine, id)).unwrap_or_default();
        // Its reservation may be withdrawn, and what comes before it may stay, without a change of the condition.
        if text.is_none() {
            self.schedule(&key, after(now, EXPLAIN_PERIOD));
        }
        self.publish(&key, text, end, now).map(|note| event(&note, record.object()))
    }

    /// Keeps an explanation. Returns the text of an Event, if it differs from that of the last one.
    fn publish(
        &mut self,
        key: &Key,
        text: Option<String>,
        end: Option<WorkloadId>,
        now: Timestamp,
    ) -> Option<Arc<str>> {
        let known = self.of.get_mut(key)?;
        // The text of a former leader may be known, and stays without a first answer.
        let is_first = known.explained_at.replace(now).is_none();
        let former = std::mem::replace(&mut known.end, end);
        let text: Option<Arc<str>> = text.map(Into::into);
        if known.text != text || is_first {
            known.text.clone_from(&text);
            self.published.push(AdmissionExplained { workload: key.clone(), text: text.clone() });
        }
        let news = text.filter(|text| known.announced.as_ref() != Some(text));
        if news.is_some() {
            known.announced.clone_from(&news);
        }
        self.remove_from_waiting(key, former);
        if let Some(end) = end {
            self.waiting_for_end_of.entry(end).or_default().insert(key.clone());
        }
        news
    }

    /// The clock jumped.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            of,
            first: _,
            deadlines_of_first,
            deadlines_of_others,
            waiting_for_end_of: _,
            not_before,
            published: _,
        } = self;
        deadlines_of_first.clock_jumped(by);
        deadlines_of_others.clock_jumped(by);
        *not_before = moved(*not_before, by);
        of.for_each_mut(|_, one| one.explained_at = one.explained_at.map(|at| moved(at, by)));
    }

    /// What was published or withdrawn since the last call.
    pub(super) fn take(&mut self) -> Vec<AdmissionExplained> {
        std::mem::take(&mut self.published)
    }
}

/// The Event about a new explanation.
fn event(note: &str, workload: &Workload) -> EventRecord {
    EventRecord {
        regarding: Regarding::of(workload),
        event_type: EventType::Normal,
        action: reasons::ADMISSION_EXPLAINED.to_owned(),
        reason: reasons::ADMISSION_EXPLAINED.to_owned(),
        note: note.to_owned(),
        controller: Some(reporters::SCHEDULER.to_owned()),
    }
}

/// Whether a Workload may have an explanation: it was refused quota, and its condition does not say everything.
#[must_use]
pub fn has_explanation(workload: &Workload) -> bool {
    refusal(workload).is_some_and(|(_, condition)| !condition_suffices(condition))
}

/// A Workload that was refused quota, with the condition.
fn refusal(workload: &Workload) -> Option<(&Workload, &Condition)> {
    let deactivated = !workload.is_active();
    let condition = find(&workload.status.conditions, QUOTA_RESERVED)?;
    (condition.status == "False" && !deactivated).then_some((workload, condition))
}

/// Whether an explanation would only repeat the condition: about gates, and queues that are missing, stopped or inactive.
fn condition_suffices(condition: &Condition) -> bool {
    condition.message.starts_with(GATED_BY)
        || matches!(
            condition.reason.as_str(),
            reasons::MISCONFIGURED
                | reasons::SUSPENDED
                | reasons::INADMISSIBLE
                | reasons::DEACTIVATED
        )
}

/// The explanation, and the Workload of which the end would help.
fn explanation(engine: &mut Engine, id: WorkloadId) -> (Option<String>, Option<WorkloadId>) {
    let Some(explained) = engine.explain_admission(id) else { return (None, None) };
    // The condition is about to say this.
    if matches!(
        explained.why.status,
        QueueingStatus::NoLocalQueue
            | QueueingStatus::Inactive(_)
            | QueueingStatus::NamespaceMismatch
            | QueueingStatus::Invalid
    ) {
        return (None, None);
    }
    let end = explained.changes.iter().find_map(|change| match change {
        SufficientChange::End(end) => Some(end.workload),
        _ => None,
    });
    (admission_text(engine, &explained), end)
}
