//! What a candidate for a lease does next, as a pure function.
//!
//! ```text
//! following: nobody holds it, or it ran out --> Acquire        leading: due          --> Renew
//!            somebody holds it              --> Wait                    not due yet  --> Wait
//!                                                                       out of time,
//!                                                                       or taken     --> Lost
//! ```
//! Two clocks are never compared. A lease runs out when its record has not changed for its duration *since this process
//! saw the change*; a leader counts from the moment *it sent* its last answered write. The write was sent before it was
//! stored, and stored before anybody saw it, so a renew deadline below the lease's duration makes the leader give up first.

use std::time::{Duration, Instant};

use super::record::LeaseRecord;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    /// How long a record that does not change is respected.
    pub lease: Duration,
    /// How long a leader goes on without an answered write. Shorter than `lease`.
    pub renew_deadline: Duration,
    /// The pause between attempts. Shorter than `renew_deadline`.
    pub retry: Duration,
}

impl Default for LeaseTiming {
    /// What Kubernetes' own controllers use.
    fn default() -> Self {
        let [lease, renew_deadline, retry] = [15, 10, 2].map(Duration::from_secs);
        Self { lease, renew_deadline, retry }
    }
}

/// Why a timing cannot be used.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum LeaseTimingError {
    /// Two could lead.
    #[error("the renew deadline {0:?} is not shorter than the lease's duration {1:?}")]
    Deadline(Duration, Duration),
    /// There would be no second attempt.
    #[error("the pause between attempts {0:?} is not shorter than the renew deadline {1:?}")]
    Retry(Duration, Duration),
    /// The wire has whole seconds, and no pause would be a storm of requests.
    #[error(
        "the lease's duration {0:?} must be whole seconds, and the pause {1:?} more than nothing"
    )]
    Granularity(Duration, Duration),
}

impl LeaseTiming {
    /// Checks what safety stands on.
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

/// What a candidate knows of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// The record as last seen.
    pub record: LeaseRecord,
    /// The object's resourceVersion; none if the object was seen to be gone, which does not end its holder's time.
    pub version: Option<String>,
    /// When this process saw the record change.
    pub changed: Instant,
    /// When this process sent its last answered write; none if it does not lead.
    pub confirmed: Option<Instant>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionStep {
    /// Write the lease, to become its holder.
    Acquire,
    /// Write the lease, to stay its holder.
    Renew,
    /// Nothing, before this moment or a change of the lease.
    Wait {
        /// When to decide again if nothing changes.
        until: Instant,
    },
    /// Stop leading, now.
    Lost,
}

/// What candidate `me` does next.
#[must_use]
pub fn decide(
    observed: Option<&ObservedLease>,
    me: &str,
    now: Instant,
    timing: &LeaseTiming,
) -> ElectionStep {
    let Some(observed) = observed else {
        return ElectionStep::Acquire;
    };
    let holder = observed.record.holder.as_str();
    match observed.confirmed {
        Some(_) if holder != me => ElectionStep::Lost,
        Some(sent) => keep(sent, now, timing),
        None if holder.is_empty() || holder == me => ElectionStep::Acquire,
        None => respect(observed, now, timing),
    }
}

/// A leader's step.
fn keep(sent: Instant, now: Instant, timing: &LeaseTiming) -> ElectionStep {
    let due = sent + timing.retry;
    if now >= sent + timing.renew_deadline {
        ElectionStep::Lost
    } else if now >= due {
        ElectionStep::Renew
    } else {
        ElectionStep::Wait { until: due }
    }
}

/// A follower's step while somebody else holds the lease. The duration that counts is the holder's.
fn respect(observed: &ObservedLease, now: Instant, timing: &LeaseTiming) -> ElectionStep {
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
    fn every_edge() {
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
    fn a_lease_that_is_gone_still_protects_its_holder() {
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
