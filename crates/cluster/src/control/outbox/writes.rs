//! The state of writes: which objects have a write in flight, and when a failed one may be tried again.
//!
//! ```text
//!            submit                 Done, or a newer object observed
//!  (free) ----------> InFlight ------------------------------------> (free)
//!    ^                   |  Stale, Gone, Exists --> Outdated --+
//!    |                   |  Refused, Unknown, Done ------------+--> a newer object (Outdated only), or the time
//!    |                   |  without change -----> Backoff -----+
//!    +----------------------------------------------------------------------------------+
//! ```
//! A write of a copy that a worker did not accept or answer is in backoff as well. Whether a create of a copy was applied is kept
//! in [`UnsettledCreates`], which no time settles.

use std::{collections::BTreeSet, time::Duration};

use dispatch::{CreateAnswer, ReadAnswer, UnsettledCreates};
use jiff::{SignedDuration, Timestamp};
use runtime::{api_object::ApiObject, watch::Key, writer::WriteOutcome};

use super::{
    order::{Subject, Target, Ticket, TicketId},
    purpose::Purpose,
    tracked::{after, version},
};
use crate::control::{
    key_map::KeyMap,
    time::{doubled, engine_time, moved, signed_nanos},
    timers::Reevaluation,
};

/// Backoff after the first write without an answer; doubles with each further one.
const INITIAL_BACKOFF: Duration = Duration::from_millis(200);

/// The longest backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Backoff after a refusal. What would make the API server accept the write may change without any watch showing it.
const REFUSAL_BACKOFF: Duration = Duration::from_secs(10);

/// Backoff after the first write of a copy that a worker did not accept; doubles with each further one. The watch of the worker
/// ends it with the next change of the object.
const COPY_BACKOFF: Duration = Duration::from_secs(1);

/// How long the watch of a worker may take to report a deletion, before the object is deleted again.
pub(crate) const REMOVAL_SHOWN_WITHIN: Duration = Duration::from_secs(15);

/// Which observation of an object a write is based on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// resourceVersion; 0 for an object that does not exist.
    pub(crate) version: u64,
    pub(crate) uid: Option<Box<str>>,
}

#[derive(Debug)]
struct WriteState {
    ticket: TicketId,
    base: Stamp,
    progress: Progress,
    failures: u32,
    /// Creates that met an existing object.
    conflicts: u32,
    purpose: Purpose,
    /// Writes of this object that ended without an answer, so that they may be applied.
    unanswered: Vec<UnansweredWrite>,
}

/// A purpose for which a write ended without an answer.
#[derive(Clone, Debug)]
struct UnansweredWrite {
    purpose: Purpose,
    /// When the first one in a row did.
    since: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    InFlight,
    /// The write was based on an old object. A newer one, or this time, allows the next write.
    Outdated(Timestamp),
    /// No write before this time.
    Backoff(Timestamp),
}

/// What an answer changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The base of the write; `None` if a later write of the same object has replaced it.
    pub(crate) base: Option<Stamp>,
    /// When the next write is allowed, if only time allows it.
    pub(crate) retry_at: Option<Timestamp>,
}

impl Settled {
    /// Whether the write was based on the object with this uid, and no later one has replaced it.
    pub(crate) fn is_of(&self, uid: Option<&str>) -> bool {
        self.base.as_ref().is_some_and(|base| base.uid.as_deref() == uid)
    }
}

/// Failed writes of an object are forgotten if none follows for this time. The object may be gone.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// The number of entries above which old failures are looked for.
const MIN_EXPIRY: usize = 64;

/// Writes by target. A target without an entry is free.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    states: KeyMap<Target, WriteState>,
    /// Creates of copies on workers.
    unsettled: UnsettledCreates<Target, Reevaluation>,
    /// The number of entries above which old failures are looked for next: twice those that were left, so that the search
    /// costs a constant per write.
    expire_above: usize,
}

impl Writes {
    /// Whether a write of the object, as it was last observed, may be submitted.
    pub(crate) fn is_free(&self, target: &Target, current: &Stamp, now: Timestamp) -> bool {
        let Some(state) = self.states.get(target) else {
            return true;
        };
        // The state of a deleted object says nothing about its successor of the same name. A read is answered with either.
        if state.base.uid != current.uid && !state.is_read_in_flight() {
            return true;
        }
        match state.progress {
            Progress::InFlight => false,
            Progress::Outdated(until) => current.version > state.base.version || until <= now,
            Progress::Backoff(until) => until <= now,
        }
    }

    /// When the next write is allowed, if only time allows it.
    pub(crate) fn retry_at(&self, target: &Target) -> Option<Timestamp> {
        match self.states.get(target)?.progress {
            Progress::Outdated(at) | Progress::Backoff(at) => Some(at),
            Progress::InFlight => None,
        }
    }

    /// Whether anything is remembered of writes of the target.
    #[cfg(test)]
    pub(crate) fn is_pending(&self, target: &Target) -> bool {
        self.states.contains_key(target)
    }

    /// Whether a write of the target is in flight, or was done and the watch has not reported it.
    pub(crate) fn is_changing(&self, target: &Target) -> bool {
        self.states.get(target).is_some_and(|state| {
            matches!(state.progress, Progress::InFlight | Progress::Outdated(_))
        })
    }

    /// Failed writes of the target in a row.
    #[cfg(test)]
    pub(crate) fn failures(&self, target: &Target) -> u32 {
        self.states.get(target).map_or(0, |state| state.failures)
    }

    /// Creates of the target that met an existing object, without one that succeeded in between.
    pub(crate) fn conflicts(&self, target: &Target) -> u32 {
        self.states.get(target).map_or(0, |state| state.conflicts)
    }

    /// Whether a create of a copy may have been applied without the watch showing it.
    pub(crate) fn is_unsettled(&self, target: &Target) -> bool {
        !self.unsettled.is_settled(target)
    }

    /// Workers on which a create without an answer may have made the clone of a Workload.
    pub(crate) fn may_have_clone(&self, key: &Key) -> Vec<&str> {
        // Targets are in the order of their objects, and those at home come first.
        let first = Target::home(Subject::Workload, key);
        let clones = self.unsettled.objects_from(first);
        let clones = clones.take_while(|one| one.key == *key && one.subject == Subject::Workload);
        clones.filter_map(|one| one.to.worker()).collect()
    }

    /// A former leader may have created a copy that the watch does not show yet: it is read.
    pub(crate) fn doubt(&mut self, target: Target, observed: Option<u64>, waiter: Reevaluation) {
        self.unsettled.doubt(target, observed.unwrap_or(0), waiter);
    }

    /// Whether a create of any copy on a worker may still be applied.
    pub(crate) fn has_unsettled(&self, cluster: &str) -> bool {
        self.unsettled.objects().any(|target| target.is_copy_on(cluster))
    }

    /// Workloads with a copy on any of these workers that is not settled.
    pub(crate) fn unsettled_on(&self, clusters: &BTreeSet<Box<str>>) -> BTreeSet<Key> {
        let on = self
            .unsettled
            .waiting()
            .filter(|(target, _)| target.to.worker().is_some_and(|name| clusters.contains(name)));
        let workloads = on.filter_map(|(_, waiter)| match waiter {
            Reevaluation::Workload(key) => Some(key.clone()),
            _ => None,
        });
        workloads.collect()
    }

    /// Copies to be read, with what waits for them.
    pub(crate) fn unsettled_due(&mut self, now: Timestamp) -> Vec<(Target, Reevaluation)> {
        self.unsettled.take_reads(engine_time(now))
    }

    /// Whether a write of the target has no answer yet.
    pub(crate) fn is_in_flight(&self, target: &Target) -> bool {
        self.states.get(target).is_some_and(|state| state.progress == Progress::InFlight)
    }

    /// Whether a write of this purpose is in flight, or ended without an answer and the watch has shown no version since.
    pub(crate) fn may_be_applied(&self, target: &Target, purpose: Purpose) -> bool {
        self.states.get(target).is_some_and(|state| {
            let is_in_flight = state.progress == Progress::InFlight && state.purpose == purpose;
            is_in_flight || state.unanswered_since(purpose).is_some()
        })
    }

    /// Since when writes of this purpose have ended without an answer, while the watch has shown no version.
    pub(crate) fn unanswered_since(&self, target: &Target, purpose: Purpose) -> Option<Timestamp> {
        self.states.get(target)?.unanswered_since(purpose)
    }

    /// Forgets failed writes that were not tried again for a long time.
    fn expire(&mut self, now: Timestamp) {
        if self.states.len() <= self.expire_above.max(MIN_EXPIRY) {
            return;
        }
        self.states.retain(|_, state| !state.is_forgotten(now));
        self.expire_above = self.states.len() * 2;
    }

    /// Records that a write was sent.
    pub(super) fn begin(&mut self, ticket: &Ticket, base: Stamp) {
        // Failures of earlier writes count on, so that the backoff keeps doubling.
        let earlier = self.states.get(&ticket.target);
        let (failures, conflicts) =
            earlier.map_or((0, 0), |state| (state.failures, state.conflicts));
        let unanswered = earlier.filter(|state| state.base == base);
        let unanswered = unanswered.map(|state| state.unanswered.clone()).unwrap_or_default();
        let (progress, purpose) = (Progress::InFlight, ticket.purpose);
        let state = WriteState {
            ticket: ticket.id,
            base,
            progress,
            failures,
            conflicts,
            purpose,
            unanswered,
        };
        self.states.insert(ticket.target.clone(), state);
        if ticket.purpose.is_create() {
            self.unsettled.sent(ticket.target.clone(), ticket.waiter.clone());
        } else if ticket.purpose == Purpose::Settle {
            self.unsettled.reading(&ticket.target);
        }
    }

    /// Records the answer to a write.
    pub(super) fn settle(
        &mut self,
        ticket: &Ticket,
        answer: &WriteOutcome,
        now: Timestamp,
    ) -> Settled {
        self.expire(now);
        self.settle_copy(ticket, answer, now);
        // The watch reported the object before the answer came (`observed`).
        let Some(state) = self.states.get_mut(&ticket.target) else {
            return Settled::default();
        };
        // A later write has replaced this one; the answer says nothing about it.
        if state.ticket != ticket.id {
            return Settled::default();
        }
        let base = Some(state.base.clone());
        let progress = if ticket.target.is_copy() {
            state.after_copy_answer(answer, now)
        } else {
            state.after_answer(answer, now)
        };
        let Some(progress) = progress else {
            self.states.remove(&ticket.target);
            return Settled { base, retry_at: None };
        };
        // A write that was based on an old object is no failure and does not lengthen the backoff.
        let failed = matches!(progress, Progress::Backoff(until) if until > now);
        (state.progress, state.failures) = (progress, state.failures + u32::from(failed));
        state.conflicts += u32::from(matches!(answer, WriteOutcome::Exists));
        state.note_answer(answer, now);
        Settled { base, retry_at: progress.until() }
    }

    /// Records what an answer says about a create of a copy that may have been applied.
    fn settle_copy(&mut self, ticket: &Ticket, answer: &WriteOutcome, now: Timestamp) {
        let now = engine_time(now);
        if ticket.purpose.is_create() {
            self.unsettled.answered(&ticket.target, create_answer(answer), now);
        } else if ticket.purpose == Purpose::Settle {
            self.unsettled.read(&ticket.target, read_answer(answer), now);
        }
    }

    /// Records that a deletion was applied and the watch has not reported it yet.
    pub(crate) fn await_removal(&mut self, target: Target, until: Timestamp) {
        let state = WriteState {
            ticket: TicketId::default(),
            base: Stamp::default(),
            progress: Progress::Outdated(until),
            purpose: Purpose::CloneDelete,
            failures: 0,
            conflicts: 0,
            unanswered: Vec::new(),
        };
        self.states.insert(target, state);
    }

    /// The watch shows this version of an object, or lacks the object. Forgets its writes. Returns false if the watch is too
    /// late to say that the object is gone.
    pub(crate) fn observe_version(&mut self, target: &Target, version: Option<u64>) -> bool {
        if let Some(version) = version {
            self.unsettled.observe(target, version);
        } else if !self.unsettled.observe_absence(target) {
            return false;
        }
        // What makes a worker refuse a deletion does not change with every status of the object.
        let delete_fails = self.states.get(target).is_some_and(WriteState::is_failed_delete);
        if version.is_none() || !delete_fails {
            self.states.remove(target);
        }
        true
    }

    /// The clock jumped: a backoff lasts as long as it would have.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { states, unsettled, expire_above: _ } = self;
        unsettled.clock_jumped(signed_nanos(by));
        states.for_each_mut(|_, state| {
            state.unanswered.iter_mut().for_each(|one| one.since = moved(one.since, by));
            match &mut state.progress {
                Progress::Outdated(at) | Progress::Backoff(at) => *at = moved(*at, by),
                Progress::InFlight => {}
            }
        });
    }

    /// Forgets a worker that is neither connected nor tried any more.
    pub(crate) fn forget_worker(&mut self, cluster: &str) {
        self.drop_answered(cluster);
        self.unsettled.retain(|target| !target.is_copy_on(cluster));
    }

    /// Forgets writes to a worker that have an answer. Called when its connection changes.
    pub(crate) fn drop_answered(&mut self, cluster: &str) {
        let in_flight = |state: &WriteState| state.progress == Progress::InFlight;
        self.states.retain(|target, state| !target.is_copy_on(cluster) || in_flight(state));
    }
}

fn create_answer(answer: &WriteOutcome) -> CreateAnswer {
    match answer {
        WriteOutcome::Done(object) => CreateAnswer::Stored(version(object)),
        WriteOutcome::Gone | WriteOutcome::Refused { .. } => CreateAnswer::Refused,
        // The object may be ours, and the watch late.
        WriteOutcome::Exists
        | WriteOutcome::Stale
        | WriteOutcome::Unknown(_)
        | WriteOutcome::UnnamedNotFound(_) => CreateAnswer::Unknown,
    }
}

/// The answer to a list of one name.
fn read_answer(answer: &WriteOutcome) -> ReadAnswer {
    match answer {
        WriteOutcome::Done(list) => match listed_object(list) {
            Some(object) => ReadAnswer::Present(version(&object)),
            None => ReadAnswer::Absent,
        },
        // The worker does not serve the kind, as its watch has shown.
        WriteOutcome::Gone => ReadAnswer::Absent,
        WriteOutcome::Exists
        | WriteOutcome::Stale
        | WriteOutcome::Refused { .. }
        | WriteOutcome::Unknown(_)
        | WriteOutcome::UnnamedNotFound(_) => ReadAnswer::Unknown,
    }
}

/// The object of a list of one name.
pub(crate) fn listed_object(list: &ApiObject) -> Option<ApiObject> {
    let mut list = list.tree();
    let items = list["items"].as_array_mut()?;
    items.drain(..).next().map(ApiObject::from)
}

impl WriteState {
    fn unanswered_since(&self, purpose: Purpose) -> Option<Timestamp> {
        self.unanswered.iter().find(|one| one.purpose == purpose).map(|one| one.since)
    }

    /// Records whether the write may be applied.
    fn note_answer(&mut self, answer: &WriteOutcome, now: Timestamp) {
        let purpose = self.purpose;
        match answer {
            WriteOutcome::Unknown(_) | WriteOutcome::UnnamedNotFound(_)
                if self.unanswered_since(purpose).is_none() =>
            {
                self.unanswered.push(UnansweredWrite { purpose, since: now });
            }
            // What has changed the object may be the write without an answer.
            WriteOutcome::Unknown(_) | WriteOutcome::UnnamedNotFound(_) | WriteOutcome::Stale => {}
            _ => self.unanswered.retain(|one| one.purpose != purpose),
        }
    }

    /// The progress after the answer to a write in the own cluster; `None` if the object is free again.
    fn after_answer(&self, answer: &WriteOutcome, now: Timestamp) -> Option<Progress> {
        match answer {
            // The watch shows nothing new: without a backoff, a decision that the API server has not carried out would
            // be written again as fast as it answers.
            WriteOutcome::Done(object)
                if self.purpose.changes_its_object() && self.is_unchanged(object) =>
            {
                Some(Progress::Backoff(after(now, self.doubled(INITIAL_BACKOFF))))
            }
            WriteOutcome::Done(_) => None,
            // An object that exists already, or differs from the base, is on its way through the watch.
            WriteOutcome::Exists | WriteOutcome::Stale | WriteOutcome::Gone => {
                Some(Progress::Outdated(after(now, MAX_BACKOFF)))
            }
            WriteOutcome::Refused { .. } => Some(Progress::Backoff(after(now, REFUSAL_BACKOFF))),
            WriteOutcome::Unknown(_) | WriteOutcome::UnnamedNotFound(_) => {
                Some(Progress::Backoff(after(now, self.doubled(INITIAL_BACKOFF))))
            }
        }
    }

    /// The progress of a write of a copy on a worker after an answer.
    fn after_copy_answer(&self, answer: &WriteOutcome, now: Timestamp) -> Option<Progress> {
        match answer {
            // What could not be created may be tried again now. Its failures count on.
            WriteOutcome::Done(_) if self.purpose == Purpose::Settle => {
                Some(Progress::Backoff(now))
            }
            // The dispatch machine records the refusal of a create, and refuses the worker for this Workload.
            WriteOutcome::Done(_) | WriteOutcome::Gone => None,
            // A foreign object of the name, or a delete that is refused, is shown by no watch: without a
            // backoff the write would be repeated as fast as the worker answers.
            // So would a write that the worker cannot answer.
            WriteOutcome::Exists
            | WriteOutcome::Stale
            | WriteOutcome::Refused { .. }
            | WriteOutcome::Unknown(_)
            | WriteOutcome::UnnamedNotFound(_) => {
                Some(Progress::Backoff(after(now, self.doubled(COPY_BACKOFF))))
            }
        }
    }

    /// Whether an answer shows the object that the write was based on.
    fn is_unchanged(&self, object: &ApiObject) -> bool {
        self.base.version != 0 && version(object) == self.base.version
    }

    fn is_read_in_flight(&self) -> bool {
        let reads = matches!(self.purpose, Purpose::Ancestor | Purpose::Owner);
        reads && self.progress == Progress::InFlight
    }

    fn is_failed_delete(&self) -> bool {
        let deletes = matches!(self.purpose, Purpose::JobDelete | Purpose::CloneDelete);
        deletes && matches!(self.progress, Progress::Backoff(_))
    }

    /// Whether the write failed and was allowed again long ago.
    fn is_forgotten(&self, now: Timestamp) -> bool {
        match self.progress {
            Progress::Outdated(at) | Progress::Backoff(at) => after(at, FORGET_AFTER) <= now,
            Progress::InFlight => false,
        }
    }

    /// A backoff, doubled with each failure so far.
    fn doubled(&self, initial: Duration) -> Duration {
        doubled(initial, self.failures, MAX_BACKOFF)
    }
}

impl Progress {
    fn until(self) -> Option<Timestamp> {
        match self {
            Self::InFlight => None,
            Self::Outdated(at) | Self::Backoff(at) => Some(at),
        }
    }
}
