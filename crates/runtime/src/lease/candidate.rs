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
    /// The highest resourceVersion of a Lease of the name so far.
    newest: u64,
    /// A lower one was observed since: the cluster was restored from a backup.
    went_back: bool,
}

impl LeaseCandidate {
    pub(super) fn new(me: String, timing: LeaseTiming) -> Self {
        Self { me, timing, observed: None, newest: 0, went_back: false }
    }

    pub(super) fn step(&self, now: Instant) -> ElectionStep {
        // The watches of this process resume at a resourceVersion that the cluster has not reached again, and are silent until then.
        if self.went_back {
            return ElectionStep::Lost;
        }
        decide(self.observed.as_ref(), &self.me, now, &self.timing)
    }

    /// The end of its leadership; none if it does not lead.
    pub(super) fn leads_until(&self) -> Option<Instant> {
        let observed = self.observed.as_ref().filter(|_| !self.went_back)?;
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

    /// Whether the cluster was restored from a backup since this candidate first observed the Lease. No process goes on from there: it
    /// has to list everything again.
    pub(super) fn went_back(&self) -> bool {
        self.went_back
    }

    /// Requests are sent one after the other, and each response is the newest state, so that only a restore shows a lower version.
    fn note_version(&mut self, found: &FoundLease) {
        let Ok(version) = found.version.parse::<u64>() else { return };
        self.went_back |= version < self.newest;
        self.newest = self.newest.max(version);
    }

    /// A read was answered.
    pub(super) fn observe(&mut self, found: Option<FoundLease>, now: Instant) {
        if let Some(found) = &found {
            self.note_version(found);
        }
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
        self.note_version(&found);
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
