//! A candidate without its network: what it saw and wrote, and so whether it leads.
//!
//! Whoever drives it reads the lease and writes what it proposes, each write on the condition that nobody wrote since.
//! Only an answered write makes a leader: one whose answer is lost may have been stored, which the next read tells, but
//! it extends nobody's time.

use std::time::Instant;

use jiff::Timestamp;

use super::{
    decide::{ElectionStep, LeaseTiming, ObservedLease, decide},
    record::LeaseRecord,
};

/// A lease as an answer of the server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundLease {
    pub(super) record: LeaseRecord,
    pub(super) version: String,
}

/// A write, and the version on which it stands; none for an object that must not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseWrite {
    pub(super) record: LeaseRecord,
    pub(super) expects: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Candidate {
    me: String,
    timing: LeaseTiming,
    observed: Option<ObservedLease>,
}

impl Candidate {
    pub(super) fn new(me: String, timing: LeaseTiming) -> Self {
        Self { me, timing, observed: None }
    }

    pub(super) fn step(&self, now: Instant) -> ElectionStep {
        decide(self.observed.as_ref(), &self.me, now, &self.timing)
    }

    /// Until when it leads, if it does.
    pub(super) fn leads_until(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        let sent = observed.confirmed?;
        (observed.record.holder == self.me).then(|| sent + self.timing.renew_deadline)
    }

    /// Whether it leads at this moment.
    pub(super) fn leads(&self, now: Instant) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }

    /// Who holds the lease, as far as it knows.
    pub(super) fn holder(&self) -> Option<&str> {
        self.observed.as_ref().map(|observed| observed.record.holder.as_str())
    }

    /// A read was answered.
    pub(super) fn saw(&mut self, found: Option<FoundLease>, now: Instant) {
        match (found, &mut self.observed) {
            (None, None) => {}
            (None, Some(observed)) => observed.version = None,
            (Some(found), None) => self.observed = Some(observation(found, now, None)),
            (Some(found), Some(observed)) if observed.record == found.record => {
                observed.version = Some(found.version);
            }
            (Some(found), Some(observed)) => {
                *observed = observation(found, now, observed.confirmed);
            }
        }
    }

    /// What to write to get or keep the lease.
    pub(super) fn propose(&self, wall: Timestamp) -> LeaseWrite {
        let (me, duration) = (&self.me, self.timing.lease);
        match &self.observed {
            None => LeaseWrite { record: LeaseRecord::first(me, duration, wall), expects: None },
            Some(observed) => LeaseWrite {
                record: observed.record.held_by(me, duration, wall),
                expects: observed.version.clone(),
            },
        }
    }

    /// What to write to let the next one in; none if the lease is not its own.
    pub(super) fn propose_release(&self, wall: Timestamp) -> Option<LeaseWrite> {
        let observed = self.observed.as_ref()?;
        let version = observed.version.clone()?;
        (observed.record.holder == self.me)
            .then(|| LeaseWrite { record: observed.record.released(wall), expects: Some(version) })
    }

    /// A write that was sent at `sent` was answered with success.
    pub(super) fn wrote(&mut self, found: FoundLease, sent: Instant) {
        self.observed = Some(observation(found, sent, Some(sent)));
    }

    /// It leads no longer; what it knows of the lease stays.
    pub(super) fn stand_down(&mut self) {
        if let Some(observed) = &mut self.observed {
            observed.confirmed = None;
        }
    }
}

fn observation(found: FoundLease, changed: Instant, confirmed: Option<Instant>) -> ObservedLease {
    ObservedLease { record: found.record, version: Some(found.version), changed, confirmed }
}
