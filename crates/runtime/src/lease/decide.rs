//! The next step of a candidate for a Lease, as a pure function.
//!
//! ```text
//! follower: no holder, or expired --> Acquire        leader: renewal due      --> Renew
//!           another holder        --> Wait                   not due yet      --> Wait
//!                                                            deadline passed,
//!                                                            or another holder --> Lost
//! ```
//! Clocks of two processes are never compared. For a follower, the Lease expires when its record has not changed for the
//! lease duration *since this process saw the change*. A leader counts from the moment *it sent* its last answered write. The
//! write was sent before it was stored, and stored before any follower saw it, so a renew deadline shorter than the lease
//! duration makes the leader give up first.

use std::time::{Duration, Instant};

use super::record::LeaseRecord;

/// The periods of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    /// How long followers respect a record that does not change.
    pub lease: Duration,
    /// How long a leader stays leader without an answered write. Shorter than `lease`.
    pub renew_deadline: Duration,
    /// The pause between attempts. Shorter than `renew_deadline`.
    pub retry: Duration,
}

impl Default for LeaseTiming {
    /// The defaults of Kubernetes' own controllers.
    fn default() -> Self {
        let [lease, renew_deadline, retry] = [15, 10, 2].map(Duration::from_secs);
        Self { lease, renew_deadline, retry }
    }
}

/// Why a timing is refused.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum LeaseTimingError {
    /// Two processes could lead at once.
    #[error("the renew deadline {0:?} is not shorter than the lease's duration {1:?}")]
    Deadline(Duration, Duration),
    /// There would be no second attempt.
    #[error("the pause between attempts {0:?} is not shorter than the renew deadline {1:?}")]
    Retry(Duration, Duration),
    /// The Lease has whole seconds, and without a pause the elector would send requests in a loop.
    #[error(
        "the lease's duration {0:?} must be whole seconds, and the pause {1:?} more than nothing"
    )]
    Granularity(Duration, Duration),
}

impl LeaseTiming {
    /// Checks the inequalities that the invariant of the module depends on.
    ///
    /// # Errors
    /// If two candidates could lead at once, or none would try again.
    pub fn check(&self) -> Result<(), LeaseTimingError> {
        if self.lease.subsec_nanos() != 0 || self.retry.is_zero() {
            return Err(LeaseTimingError::Granularity(self.lease, self.retry));
        }
        if self.renew_deadline >= self.lease {
            return Err(LeaseTimingError::Deadline(self.renew_deadline, self.lease));
        }
        if self.retry >= self.renew_deadline {
            return Err(LeaseTimingError::Retry(self.retry, self.renew_deadline));
        }
        Ok(())
    }
}

/// The Lease as observed by a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// The record as last seen.
    pub record: LeaseRecord,
    /// The resourceVersion of the Lease; none if the Lease was deleted. A deletion does not end the holder's time.
    pub version: Option<String>,
    /// When this process saw the record change.
    pub changed: Instant,
    /// When this process sent its last answered write; none if it does not lead.
    pub confirmed: Option<Instant>,
}

/// The next step of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionStep {
    /// Write the Lease to become its holder.
    Acquire,
    /// Write the Lease to stay its holder.
    Renew,
    /// Do nothing until this moment or until the Lease changes.
    Wait {
        /// When to decide again if the Lease does not change.
        until: Instant,
    },
    /// Stop leading, immediately.
    Lost,
}

/// The next step of candidate `me`.
#[must_use]
pub fn decide(
    observed: Option<&ObservedLease>,
    me: &str,
    now: Instant,
    timing: &LeaseTiming,
) -> ElectionStep {
    let Some(observed) = observed else {
        // No Lease exists: of several creates the API server accepts one.
        return ElectionStep::Acquire;
    };
    let holder = observed.record.holder.as_str();
    match observed.confirmed {
        // The other holder may act already, so the rest of the renew deadline does not count.
        Some(_) if holder != me => ElectionStep::Lost,
        Some(sent) => leader_step(sent, now, timing),
        // Its own record without a confirmation: a write without an answer, or an earlier process
        // with this identity.
        None if holder.is_empty() || holder == me => ElectionStep::Acquire,
        None => follower_step(observed, now, timing),
    }
}

/// The step of a leader.
fn leader_step(sent: Instant, now: Instant, timing: &LeaseTiming) -> ElectionStep {
    let renew_at = sent + timing.retry;
    // The deadline first: after a suspension of the process both moments may have passed.
    if now >= sent + timing.renew_deadline {
        ElectionStep::Lost
    } else if now >= renew_at {
        ElectionStep::Renew
    } else {
        ElectionStep::Wait { until: renew_at }
    }
}

/// The step of a follower while another process holds the Lease. The holder's lease duration counts.
fn follower_step(observed: &ObservedLease, now: Instant, timing: &LeaseTiming) -> ElectionStep {
    // Another implementation may leave the duration unset.
    let until = observed.changed + observed.record.duration.unwrap_or(timing.lease);
    if now >= until { ElectionStep::Acquire } else { ElectionStep::Wait { until } }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: &str = "me";

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Holder, duration in seconds, and the second in which this process's last answered write was sent. The record
    /// changed in second 100.
    type Case = (&'static str, Option<u64>, Option<u64>);

    fn observed(start: Instant, (holder, duration, confirmed): Case) -> ObservedLease {
        let record = LeaseRecord {
            holder: holder.to_owned(),
            duration: duration.map(secs),
            ..LeaseRecord::default()
        };
        let confirmed = confirmed.map(|at| start + secs(at));
        ObservedLease {
            record,
            version: Some("1".to_owned()),
            changed: start + secs(100),
            confirmed,
        }
    }

    #[test]
    fn every_edge_of_the_diagram() {
        let start = Instant::now();
        let at = |seconds| start + secs(seconds);
        let wait = |seconds| ElectionStep::Wait { until: at(seconds) };
        let table: [(Case, u64, ElectionStep); 18] = [
            // Following.
            (("", Some(1), None), 100, ElectionStep::Acquire),
            (("", Some(15), None), 100, ElectionStep::Acquire),
            ((ME, Some(15), None), 100, ElectionStep::Acquire),
            (("other", Some(15), None), 100, wait(115)),
            (("other", Some(15), None), 114, wait(115)),
            (("other", Some(15), None), 115, ElectionStep::Acquire),
            (("other", Some(15), None), 500, ElectionStep::Acquire),
            (("other", Some(60), None), 115, wait(160)),
            (("other", Some(1), None), 101, ElectionStep::Acquire),
            (("other", None, None), 114, wait(115)),
            (("other", None, None), 115, ElectionStep::Acquire),
            // Leading.
            ((ME, Some(15), Some(100)), 100, wait(102)),
            ((ME, Some(15), Some(100)), 102, ElectionStep::Renew),
            ((ME, Some(15), Some(100)), 109, ElectionStep::Renew),
            ((ME, Some(15), Some(100)), 110, ElectionStep::Lost),
            ((ME, Some(60), Some(100)), 110, ElectionStep::Lost),
            (("other", Some(15), Some(100)), 100, ElectionStep::Lost),
            (("", Some(1), Some(100)), 100, ElectionStep::Lost),
        ];
        for (case, now, expected) in table {
            let observed = observed(start, case);
            let step = decide(Some(&observed), ME, at(now), &LeaseTiming::default());
            assert_eq!(step, expected, "{case:?} at {now}");
        }
        assert_eq!(decide(None, ME, start, &LeaseTiming::default()), ElectionStep::Acquire);
    }

    #[test]
    fn a_deleted_lease_still_protects_its_holder() {
        let start = Instant::now();
        let mut gone = observed(start, ("other", Some(15), None));
        gone.version = None;
        let wait = ElectionStep::Wait { until: start + secs(115) };
        assert_eq!(decide(Some(&gone), ME, start + secs(110), &LeaseTiming::default()), wait);
    }

    #[test]
    fn timings_that_allow_two_leaders_are_refused() {
        let timing = |lease, deadline, retry| {
            let [lease, renew_deadline, retry] =
                [lease, deadline, retry].map(Duration::from_millis);
            LeaseTiming { lease, renew_deadline, retry }
        };
        assert_eq!(LeaseTiming::default().check(), Ok(()));
        let refused = [
            timing(15_000, 15_000, 2_000),
            timing(15_000, 16_000, 2_000),
            timing(15_000, 10_000, 10_000),
            timing(15_500, 10_000, 2_000),
            timing(15_000, 10_000, 0),
        ];
        for one in refused {
            assert!(one.check().is_err(), "{one:?}");
        }
    }
}
