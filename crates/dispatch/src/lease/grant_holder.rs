//! The agent's half: which copies may start, keep running, or have to stop.
//!
//! A copy starts if a grant lasts, if the copy is of the session and the term of the hub Lease, and if the echo belongs to
//! a beat that was sent after the copy was observed: then that hub Lease is newer than the copy, and would show a
//! newer leader. A copy that was admitted has passed this; it runs as long as a grant lasts. Source:
//! docs/reference/dispatch.md §7.

use std::collections::{BTreeMap, VecDeque};

use engine::Time;

use super::{AgentBeat, GrantTiming, HubGrant, LeaseStamp};

/// Beats whose echo may still come. Echoes of earlier ones are ignored.
const KEPT_BEATS: usize = 16;

/// What is known about one manager.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HubState {
    term: u64,
    session: u64,
    timing: GrantTiming,
    /// The newest beat that was echoed, and the end of the grant.
    granted: Option<(u64, Time)>,
    /// Until when the work of the predecessor may run without a grant.
    allowance: Option<Time>,
}

/// The grants of one agent process, by the origin of the manager.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrantHolder {
    boot: Box<str>,
    began: Time,
    /// Boot of the process that wrote the agent's Lease before.
    predecessor: Option<Box<str>>,
    sequence: u64,
    sent: VecDeque<(u64, Time)>,
    hubs: BTreeMap<Box<str>, HubState>,
}

/// A copy under ExactlyOnce, as the agent knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeasedCopy {
    /// What it carries.
    pub stamp: LeaseStamp,
    /// An agent has admitted it.
    pub admitted: bool,
    /// [`GrantHolder::sequence`] when this process first observed it with its stamp.
    pub observed_at: u64,
}

/// What an agent does with a copy now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyVerdict {
    /// It may be admitted and started.
    Start,
    /// It runs on, until [`GrantHolder::deadline`].
    Keep,
    /// It waits for the echo of a further beat.
    AwaitEcho,
    /// It waits for the manager: a grant, or the stamp of the present leader.
    AwaitManager,
    /// It is stopped, and never starts again.
    Fence,
}

impl GrantHolder {
    /// The grants of a process that begins now. `previous` is the content of the agent's Lease at its first list.
    #[must_use]
    pub fn new(boot: Box<str>, previous: Option<&AgentBeat>, now: Time) -> Self {
        Self {
            boot,
            began: now,
            predecessor: previous.map(|beat| beat.boot.clone()),
            sequence: 0,
            sent: VecDeque::new(),
            hubs: BTreeMap::new(),
        }
    }

    /// The number of the last beat.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The next beat. It is called before the beat is sent, so that the grant begins before the echo.
    pub fn beat(&mut self, now: Time) -> AgentBeat {
        self.sequence = self.sequence.saturating_add(1);
        self.sent.push_back((self.sequence, now));
        if self.sent.len() > KEPT_BEATS {
            self.sent.pop_front();
        }
        AgentBeat { boot: self.boot.clone(), sequence: self.sequence }
    }

    /// When the next beat is due; `None` without a manager that writes a Lease.
    #[must_use]
    pub fn next_beat(&self) -> Option<Time> {
        let interval = self.hubs.values().map(|hub| hub.timing.beat_interval()).min()?;
        let last = self.sent.back().map(|(_, sent)| sent.0.saturating_add(interval));
        Some(Time(last.unwrap_or(self.began.0)))
    }

    /// The hub Lease of a manager was observed.
    pub fn observe(&mut self, origin: &str, lease: &HubGrant) {
        let timing = GrantTiming { duration: lease.duration };
        let hub = self.hubs.entry(origin.into()).or_insert_with(|| {
            // The last echo went to another process than the last one: that one had no grant, and its time is used up.
            let echoed = lease.echo.as_ref().map(|echo| &echo.boot);
            let has_grant = echoed.is_some() && echoed == self.predecessor.as_ref();
            let until = Time(self.began.0.saturating_add(timing.restart_allowance()));
            HubState {
                term: lease.term,
                session: lease.session,
                timing,
                granted: None,
                allowance: has_grant.then_some(until),
            }
        });
        // A leader that was replaced, or a worker that was fenced since.
        if lease.term < hub.term || lease.session < hub.session {
            return;
        }
        (hub.term, hub.session, hub.timing) = (lease.term, lease.session, timing);
        let Some(echo) = lease.echo.as_ref().filter(|echo| echo.boot == self.boot) else {
            return;
        };
        let Some((_, sent)) = self.sent.iter().find(|(sequence, _)| *sequence == echo.sequence)
        else {
            return;
        };
        if hub.granted.is_none_or(|(sequence, _)| sequence < echo.sequence) {
            hub.granted = Some((echo.sequence, Time(sent.0.saturating_add(timing.grant()))));
        }
    }

    /// The manager has removed its Lease: it grants nothing further.
    pub fn forget(&mut self, origin: &str) {
        self.hubs.remove(origin);
    }

    /// Voids every grant, and what a predecessor had: the clock was set by so many nanoseconds, so that their ends are not known.
    /// The next beat is due at once.
    pub fn void_grants(&mut self, by: i64) {
        self.sent.clear();
        self.predecessor = None;
        self.began = Time(self.began.0.saturating_add(by));
        for hub in self.hubs.values_mut() {
            (hub.granted, hub.allowance) = (None, None);
        }
    }

    /// Until when admitted copies of a manager may run.
    #[must_use]
    pub fn deadline(&self, origin: &str) -> Option<Time> {
        let hub = self.hubs.get(origin)?;
        hub.granted.map(|(_, until)| until).into_iter().chain(hub.allowance).max()
    }

    /// What to do with a copy now.
    #[must_use]
    pub fn verdict(&self, origin: &str, copy: &LeasedCopy, now: Time) -> CopyVerdict {
        let Some(hub) = self.hubs.get(origin) else {
            return if copy.admitted { CopyVerdict::Fence } else { CopyVerdict::AwaitManager };
        };
        if copy.stamp.session < hub.session {
            return CopyVerdict::Fence;
        }
        if copy.admitted {
            let lasts = self.deadline(origin).is_some_and(|until| now < until);
            return if lasts { CopyVerdict::Keep } else { CopyVerdict::Fence };
        }
        match hub.granted.filter(|(_, until)| now < *until) {
            None => CopyVerdict::AwaitManager,
            // The copy of a newer leader or session may be observed before its hub Lease.
            Some(_) if copy.stamp != (LeaseStamp { session: hub.session, term: hub.term }) => {
                CopyVerdict::AwaitManager
            }
            Some((echoed, _)) if echoed <= copy.observed_at => CopyVerdict::AwaitEcho,
            Some(_) => CopyVerdict::Start,
        }
    }
}
