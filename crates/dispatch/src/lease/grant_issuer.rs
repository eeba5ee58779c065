//! The manager's half: when it echoes beats, and when a lost worker is fenced.
//!
//! ```text
//!            reached          hub Lease written
//! (new term) -------> Claim -------------------> Open --- each beat ---> Issue
//!                                                  | lost
//!                                                  v
//!                     (reached again) <-- Closed: no echo --- time, or a person ---> EndSession
//!                                                                                        | recorded
//!              (reached: next session) <----------------- Fenced <----------------------+
//! ```
//! The record in the manager's own cluster is written before the worker depends on it: a leader claims it before it writes
//! to the worker, so that it knows the session; the session ends there before work starts elsewhere, so that no later
//! leader grants it again. A leader that begins counts from its beginning, because its predecessor may have echoed until
//! then. A `leaseDuration` is recorded before a grant has it, and until no such grant lasts: a fence counts the longest one,
//! although the policy may have become shorter since. Source: docs/reference/dispatch.md §7-8.

use engine::Time;

use super::{AgentBeat, FenceRecord, Fencing, GrantTiming, HubGrant};

/// The leases of one worker, as this leader knows them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrantIssuer {
    term: u64,
    last_attempt: Time,
    /// The longest `leaseDuration` of a grant that may last.
    longest: i64,
    /// The last attempt with it, of this leader or, at its beginning, of a former one.
    longest_at: Time,
    /// The grant whose write is not answered.
    attempted: Option<HubGrant>,
    /// The session without further echoes, after the worker was lost.
    closed: Option<u64>,
    /// A person has confirmed that nothing runs there.
    confirmed: bool,
}

/// What a decision needs to know about a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLeases<'a> {
    /// The record in the manager's own cluster.
    pub record: FenceRecord,
    /// It is connected and listed.
    pub reached: bool,
    /// It was not reached for `lostAfter`.
    pub lost: bool,
    /// A person has confirmed that nothing runs there.
    pub confirmed: bool,
    /// What proves that its work has stopped.
    pub fencing: Fencing,
    /// `leaseDuration` of the policy.
    pub timing: GrantTiming,
    /// The agent's Lease.
    pub beat: Option<&'a AgentBeat>,
    /// The hub Lease.
    pub grant: Option<&'a HubGrant>,
}

/// What a manager does about the leases of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerStep {
    /// Write this record in the manager's own cluster, with a resourceVersion.
    Claim(FenceRecord),
    /// Write the hub Lease, with a resourceVersion.
    Issue(HubGrant),
    /// The worker is fenced when this record is written, with a resourceVersion.
    EndSession(FenceRecord),
    /// Decide again at this time.
    WaitUntil(Time),
}

impl GrantIssuer {
    /// The leases of a leader that began at `now`.
    #[must_use]
    pub fn new(term: u64, now: Time) -> Self {
        let (attempted, closed, confirmed) = (None, None, false);
        let (last_attempt, longest, longest_at) = (now, 0, now);
        Self { term, last_attempt, longest, longest_at, attempted, closed, confirmed }
    }

    /// The write of the hub Lease was answered. After a refusal the same grant is written again.
    pub fn answered(&mut self) {
        self.attempted = None;
    }

    /// Whether every grant that was attempted is answered.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.attempted.is_none()
    }

    /// Whether the worker takes ExactlyOnce work: this leader has written there, and the agent beats.
    #[must_use]
    pub fn is_open(&self, worker: &WorkerLeases<'_>) -> bool {
        let echoes = worker.grant.and_then(|grant| grant.echo.as_ref()).zip(worker.beat);
        self.writes(worker) && echoes.is_some_and(|(echo, beat)| echo.boot == beat.boot)
    }

    /// Whether the hub Lease keeps late creates of former leaders from starting. Only what is listed after that proves that a
    /// copy is absent.
    #[must_use]
    pub fn writes(&self, worker: &WorkerLeases<'_>) -> bool {
        let FenceRecord { term, session, .. } = worker.record;
        let own = |grant: &HubGrant| grant.term == self.term && grant.session == session;
        worker.reached && term == self.term && worker.grant.is_some_and(own)
    }

    /// Whether nothing that was sent to the worker runs there or can start. It holds until the worker is reached.
    #[must_use]
    pub fn is_fenced(&self, worker: &WorkerLeases<'_>, now: Time) -> bool {
        let FenceRecord { term, session, .. } = worker.record;
        let ended = term == self.term && self.closed.is_some_and(|closed| session > closed);
        ended && !worker.reached && self.may_end(worker, now)
    }

    /// The clock that times come from was set by so many nanoseconds: attempts count as if it had run steadily.
    pub fn clock_jumped(&mut self, by: i64) {
        let Self {
            term: _,
            last_attempt,
            longest: _,
            longest_at,
            attempted: _,
            closed: _,
            confirmed: _,
        } = self;
        for at in [last_attempt, longest_at] {
            *at = Time(at.0.saturating_add(by));
        }
    }

    /// The next step.
    pub fn decide(&mut self, worker: &WorkerLeases<'_>, now: Time) -> Option<IssuerStep> {
        if worker.record.term > self.term {
            return None;
        }
        self.longest = self.longest.max(worker.record.longest);
        if worker.reached {
            (self.closed, self.confirmed) = (None, false);
            return self.serve(worker, now);
        }
        // An echo of an earlier connection may still arrive; it counts from its attempt.
        self.attempted = None;
        let timed = worker.fencing == Fencing::Timed && worker.lost;
        self.confirmed |= worker.confirmed;
        // A session that a former leader has ended may have been used since, so this leader ends one of its own.
        let of_former = worker.record.term < self.term;
        if (timed || self.confirmed) && (self.closed.is_none() || of_former) {
            self.closed = Some(worker.record.session);
        }
        self.end(worker, now)
    }

    /// A worker that is reached.
    fn serve(&mut self, worker: &WorkerLeases<'_>, now: Time) -> Option<IssuerStep> {
        // The record of a MultiKueueCluster that was deleted or restored is older than what the worker knows.
        let known = worker.grant.map_or(0, |grant| grant.session);
        let session = worker.record.session.max(known);
        let longest = self.longest_duration(worker, now);
        let record = FenceRecord { term: self.term, session, longest };
        if worker.record != record {
            return Some(IssuerStep::Claim(record));
        }
        // The Lease of a newer leader.
        if worker.grant.is_some_and(|grant| grant.term > self.term) {
            return None;
        }
        let grant = HubGrant {
            term: self.term,
            session: record.session,
            duration: worker.timing.duration,
            echo: worker.beat.cloned(),
        };
        if worker.grant == Some(&grant) || self.attempted.is_some() {
            return None;
        }
        self.last_attempt = self.last_attempt.max(now);
        if grant.duration >= self.longest {
            (self.longest, self.longest_at) = (grant.duration, self.last_attempt);
        }
        self.attempted = Some(grant.clone());
        Some(IssuerStep::Issue(grant))
    }

    /// What the record says before the next grant. A longer duration of earlier grants is dropped when none of these lasts.
    fn longest_duration(&mut self, worker: &WorkerLeases<'_>, now: Time) -> i64 {
        let over = GrantTiming { duration: self.longest }.fenced_after();
        if now.0 >= self.longest_at.0.saturating_add(over) {
            self.longest = 0;
        }
        let granted = worker.grant.map_or(0, |grant| grant.duration);
        self.longest.max(granted).max(worker.timing.duration)
    }

    /// A worker that is not reached.
    fn end(&self, worker: &WorkerLeases<'_>, now: Time) -> Option<IssuerStep> {
        let session = self.closed?;
        if worker.record.session > session {
            return None;
        }
        if !self.may_end(worker, now) {
            return Some(IssuerStep::WaitUntil(self.fenced_at(worker)));
        }
        let (next, longest) = (session.saturating_add(1), self.longest);
        Some(IssuerStep::EndSession(FenceRecord { term: self.term, session: next, longest }))
    }

    fn may_end(&self, worker: &WorkerLeases<'_>, now: Time) -> bool {
        self.confirmed || worker.fencing == Fencing::Timed && now >= self.fenced_at(worker)
    }

    /// When no grant of an earlier attempt lasts, and what ran under it has stopped.
    #[must_use]
    pub fn fenced_at(&self, worker: &WorkerLeases<'_>) -> Time {
        let duration = self.longest.max(worker.record.longest).max(worker.timing.duration);
        Time(self.last_attempt.0.saturating_add(GrantTiming { duration }.fenced_after()))
    }
}
