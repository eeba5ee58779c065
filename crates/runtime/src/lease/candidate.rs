//! A candidate without IO: what it observed and wrote, and whether it leads.
//!
//! The driver ([`Elector`](super::Elector)) reads the Lease and writes what the candidate proposes, each write with a
//! precondition. Only an answered write makes or keeps a leader. A write without an answer may have been stored; the next read
//! shows it, but it does not extend the leader's time.

use std::time::Instant;

use jiff::Timestamp;

use super::{
    decide::{ElectionStep, LeaseTiming, ObservedLease, decide},
    record::LeaseRecord,
};

/// The Lease in a response of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundLease {
    pub(super) record: LeaseRecord,
    pub(super) version: String,
}

/// A proposed write, and the resourceVersion that it expects; none if the Lease must not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseWrite {
    pub(super) record: LeaseRecord,
    pub(super) expects: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct LeaseCandidate {
    me: String,
    timing: LeaseTiming,
    observed: Option<ObservedLease>,
}

impl LeaseCandidate {
    pub(super) fn new(me: String, timing: LeaseTiming) -> Self {
        Self { me, timing, observed: None }
    }

    pub(super) fn step(&self, now: Instant) -> ElectionStep {
        decide(self.observed.as_ref(), &self.me, now, &self.timing)
    }

    /// The end of its leadership; none if it does not lead.
    pub(super) fn leads_until(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        let sent = observed.confirmed?;
        (observed.record.holder == self.me).then(|| sent + self.timing.renew_deadline)
    }

    /// Whether it leads at `now`.
    pub(super) fn leads(&self, now: Instant) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }

    /// The holder of the Lease as last observed.
    pub(super) fn holder(&self) -> Option<&str> {
        self.observed.as_ref().map(|observed| observed.record.holder.as_str())
    }

    /// A read was answered.
    pub(super) fn observe(&mut self, found: Option<FoundLease>, now: Instant) {
        match (found, &mut self.observed) {
            (None, None) => {}
            // A deletion does not end the time of the holder; only the next write has to be a
            // create.
            (None, Some(observed)) => observed.version = None,
            (Some(found), None) => self.observed = Some(observation(found, now, None)),
            (Some(found), Some(observed)) if observed.record == found.record => {
                // An equal record keeps the time of its change: a write of other fields does not
                // extend the lease.
                observed.version = Some(found.version);
            }
            (Some(found), Some(observed)) => {
                *observed = observation(found, now, observed.confirmed);
            }
        }
    }

    /// The write that acquires or renews the Lease.
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

    /// The write that releases the Lease; none if this candidate is not the holder.
    pub(super) fn propose_release(&self, wall: Timestamp) -> Option<LeaseWrite> {
        let observed = self.observed.as_ref()?;
        // A Lease that was deleted needs no release.
        let version = observed.version.clone()?;
        (observed.record.holder == self.me)
            .then(|| LeaseWrite { record: observed.record.released(wall), expects: Some(version) })
    }

    /// A write that was sent at `sent` succeeded.
    pub(super) fn confirm(&mut self, found: FoundLease, sent: Instant) {
        // From the time of sending: a follower sees the write later than that.
        self.observed = Some(observation(found, sent, Some(sent)));
    }

    /// Gives up leadership. The observed Lease is kept.
    pub(super) fn stand_down(&mut self) {
        if let Some(observed) = &mut self.observed {
            observed.confirmed = None;
        }
    }
}

fn observation(found: FoundLease, changed: Instant, confirmed: Option<Instant>) -> ObservedLease {
    ObservedLease { record: found.record, version: Some(found.version), changed, confirmed }
}
