//! The state of writes: which objects have a write in flight, and when a failed one may be tried again.
//!
//! ```text
//!            submit                 Done, or a newer object observed
//!  (free) ----------> InFlight ------------------------------------> (free)
//!    ^                   |  Stale, Gone, Exists --> Outdated --+
//!    |                   |  Refused, Unknown -----> Backoff ---+--> a newer object (Outdated only), or the time
//!    +----------------------------------------------------------------------------------+
//! ```
//! A write of a copy on a worker cluster that got no answer is `Unconfirmed`: it may still be applied until that time, and
//! another one may be sent meanwhile.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use runtime::writer::WriteOutcome;

use super::{
    order::{Target, Ticket, TicketId},
    tracked::after,
};

/// Backoff after the first write without an answer; doubles with each further one.
const INITIAL_BACKOFF: Duration = Duration::from_millis(200);

/// The longest backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Backoff after a refusal. What would make the API server accept the write may change without any watch showing it.
const REFUSAL_BACKOFF: Duration = Duration::from_secs(10);

/// How long a create without an answer may still be applied on a worker, and how long the watch may take to report a deletion.
pub(crate) const UNCONFIRMED_FOR: Duration = Duration::from_secs(15);

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    InFlight,
    /// The write was based on an old object. A newer one, or this time, allows the next write.
    Outdated(Timestamp),
    /// No write before this time.
    Backoff(Timestamp),
    /// A write on a worker without an answer; it may still be applied until then.
    Unconfirmed(Timestamp),
}

/// What an answer changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The base of the write; `None` if a later write of the same object has replaced it.
    pub(crate) base: Option<Stamp>,
    /// When the next write is allowed, if only time allows it.
    pub(crate) retry_at: Option<Timestamp>,
}

/// Failed writes of an object are forgotten if none follows for this time. The object may be gone.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// The number of entries above which old failures are looked for.
const MIN_EXPIRY: usize = 64;

/// Writes by target. A target without an entry is free.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    states: BTreeMap<Target, WriteState>,
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
        // The state of a deleted object says nothing about its successor of the same name.
        if state.base.uid != current.uid {
            return true;
        }
        match state.progress {
            Progress::InFlight => false,
            Progress::Outdated(until) => current.version > state.base.version || until <= now,
            Progress::Backoff(until) => until <= now,
            // A second write does no harm: a create meets the object of the first, a deletion names
            // a uid.
            Progress::Unconfirmed(_) => true,
        }
    }

    /// When the next write is allowed, if only time allows it.
    pub(crate) fn retry_at(&self, target: &Target) -> Option<Timestamp> {
        match self.states.get(target)?.progress {
            Progress::Outdated(at) | Progress::Backoff(at) => Some(at),
            Progress::InFlight | Progress::Unconfirmed(_) => None,
        }
    }

    /// Whether a write of the target was sent and not settled, whatever the time.
    pub(crate) fn is_pending(&self, target: &Target) -> bool {
        self.states.contains_key(target)
    }

    /// Whether a write of the target may still be applied.
    pub(crate) fn may_apply(&self, target: &Target, now: Timestamp) -> bool {
        self.states.get(target).is_some_and(|state| state.may_apply(now))
    }

    /// Whether any write to a worker's copies may still be applied there.
    pub(crate) fn any_may_apply(&self, cluster: &str, now: Timestamp) -> bool {
        self.of_cluster(cluster).any(|state| state.may_apply(now))
    }

    /// Whether a write of the target has no answer yet.
    pub(crate) fn is_in_flight(&self, target: &Target) -> bool {
        self.states.get(target).is_some_and(|state| state.progress == Progress::InFlight)
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
        let failures = self.states.get(&ticket.target).map_or(0, |state| state.failures);
        let state = WriteState { ticket: ticket.id, base, progress: Progress::InFlight, failures };
        self.states.insert(ticket.target.clone(), state);
    }

    /// Records the answer to a write.
    pub(super) fn settle(
        &mut self,
        ticket: &Ticket,
        answer: &WriteOutcome,
        now: Timestamp,
    ) -> Settled {
        self.expire(now);
        // The watch reported the object before the answer came (`observed`).
        let Some(state) = self.states.get_mut(&ticket.target) else {
            return Settled::default();
        };
        // A later write has replaced this one; the answer says nothing about it.
        if state.ticket != ticket.id {
            return Settled::default();
        }
        let base = Some(state.base.clone());
        let progress = match (answer, ticket.target.is_copy()) {
            (WriteOutcome::Done(_), _) => None,
            // The write may still be applied there: an unanswered create is a possible copy
            // (docs/reference/dispatch.md §6).
            (WriteOutcome::Unknown(_), true) => {
                Some(Progress::Unconfirmed(after(now, UNCONFIRMED_FOR)))
            }
            (_, true) => None,
            // An object that exists already, or differs from the base, is on its way through the watch.
            (WriteOutcome::Exists | WriteOutcome::Stale | WriteOutcome::Gone, false) => {
                Some(Progress::Outdated(after(now, MAX_BACKOFF)))
            }
            (WriteOutcome::Refused { .. }, false) => {
                Some(Progress::Backoff(after(now, REFUSAL_BACKOFF)))
            }
            (WriteOutcome::Unknown(_), false) => {
                Some(Progress::Backoff(after(now, state.backoff())))
            }
        };
        let Some(progress) = progress else {
            self.states.remove(&ticket.target);
            return Settled { base, retry_at: None };
        };
        // A write that was based on an old object is no failure and does not lengthen the backoff.
        let failed = matches!(progress, Progress::Backoff(_));
        (state.progress, state.failures) = (progress, state.failures + u32::from(failed));
        Settled { base, retry_at: progress.until() }
    }

    /// Records that a deletion was applied and the watch has not reported it yet.
    pub(crate) fn await_removal(&mut self, target: Target, until: Timestamp) {
        let state = WriteState {
            ticket: TicketId::default(),
            base: Stamp::default(),
            progress: Progress::Unconfirmed(until),
            failures: 0,
        };
        self.states.insert(target, state);
    }

    /// Forgets writes of an object that its watch has reported.
    pub(crate) fn observed(&mut self, target: &Target) {
        self.states.remove(target);
    }

    /// Forgets writes to a worker that cannot be applied any more. Called when its connection changes.
    pub(crate) fn drop_settled(&mut self, cluster: &str, now: Timestamp) {
        self.states.retain(|target, state| !target.is_copy_on(cluster) || state.may_apply(now));
    }

    fn of_cluster<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a WriteState> {
        let states = self.states.iter();
        states.filter(move |(target, _)| target.is_copy_on(cluster)).map(|(_, state)| state)
    }
}

impl WriteState {
    fn may_apply(&self, now: Timestamp) -> bool {
        match self.progress {
            Progress::InFlight => true,
            Progress::Unconfirmed(until) => until > now,
            Progress::Outdated(_) | Progress::Backoff(_) => false,
        }
    }

    /// Whether the write failed and was allowed again long ago. Unconfirmed writes stay: they say what a worker may have.
    fn is_forgotten(&self, now: Timestamp) -> bool {
        match self.progress {
            Progress::Outdated(at) | Progress::Backoff(at) => after(at, FORGET_AFTER) <= now,
            Progress::InFlight | Progress::Unconfirmed(_) => false,
        }
    }

    fn backoff(&self) -> Duration {
        INITIAL_BACKOFF.saturating_mul(1 << self.failures.min(10)).min(MAX_BACKOFF)
    }
}

impl Progress {
    fn until(self) -> Option<Timestamp> {
        match self {
            Self::InFlight => None,
            Self::Outdated(at) | Self::Backoff(at) | Self::Unconfirmed(at) => Some(at),
        }
    }
}
