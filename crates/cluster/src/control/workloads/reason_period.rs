//! How often the reason of a pending Workload is written: in a busy queue it changes with every pod.
//!
//! A reason that follows from an object, as of a queue that was created or a spec that was changed, cuts the period short. Objects
//! that change all the time must not cause as many writes of each of their Workloads, so it does so once in a while only.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::control::{outbox::after, time::moved};

/// The least time between two reasons of one Workload.
const EXPLAIN_PERIOD: Duration = Duration::from_secs(5);

/// The least time between two periods that are cut short.
const CUT_SHORT_ONCE_IN: Duration = Duration::from_secs(30);

/// The period in which the reason of one Workload is not written again.
#[derive(Debug, Default)]
pub(super) struct ReasonPeriod {
    ends: Option<Timestamp>,
    cut_short_at: Option<Timestamp>,
}

impl ReasonPeriod {
    /// A reason was written: the next period begins. Returns its end.
    pub(super) fn begin(&mut self, now: Timestamp) -> Timestamp {
        if self.ends.is_some_and(|end| now < end) {
            self.cut_short_at = Some(now);
        }
        let end = after(now, EXPLAIN_PERIOD);
        self.ends = Some(end);
        end
    }

    /// The clock jumped.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { ends, cut_short_at } = self;
        for at in [ends, cut_short_at] {
            *at = at.map(|at| moved(at, by));
        }
    }

    /// Whether a reason that follows from an object may be written at this time, within the period.
    pub(super) fn may_be_cut_short(&self, at: Timestamp) -> bool {
        self.cut_short_at.is_none_or(|last| after(last, CUT_SHORT_ONCE_IN) <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_cut_short_once_in_thirty_seconds() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let mut period = ReasonPeriod::default();
        assert!(period.may_be_cut_short(at(0)));
        assert_eq!(period.begin(at(0)), at(5));
        assert_eq!(period.begin(at(5)), at(10));
        assert!(period.may_be_cut_short(at(6)), "the last one was not");
        assert_eq!(period.begin(at(7)), at(12));
        assert!(!period.may_be_cut_short(at(36)));
        assert!(period.may_be_cut_short(at(37)));
    }
}
