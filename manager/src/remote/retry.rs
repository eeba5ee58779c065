//! When a connection is tried again, and what is said meanwhile (docs/reference/multikueue.md §1.2, §2.8). Pure.
//!
//! The pause doubles from five seconds to five minutes and twenty seconds. Success, or another configuration, begins anew.

use std::time::Duration;

use cluster::control::Link;
use crds::names::reasons::{ACTIVE, CLIENT_CONNECTION_FAILED};
use jiff::{SignedDuration, Timestamp};

/// Doublings end with this attempt.
const LAST_DOUBLING: u32 = 7;

/// Attempts that failed, since the last that did not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    first_pause: Duration,
    failed: u32,
}

impl Attempts {
    /// None yet.
    pub(super) fn new(first_pause: Duration) -> Self {
        Self { first_pause, failed: 0 }
    }

    /// One more failed. The pause before the next.
    pub(super) fn fail(&mut self) -> Duration {
        self.failed = self.failed.saturating_add(1);
        self.first_pause * (1 << (self.failed.min(LAST_DOUBLING) - 1))
    }

    /// One did not fail, or the configuration is another.
    pub(super) fn reset(&mut self) {
        self.failed = 0;
    }

    /// What is told of a connection that failed and is tried again after the pause.
    pub(super) fn link(&self, cause: &str, pause: Duration, now: Timestamp) -> Link {
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        let next = now.saturating_add(pause).unwrap_or(Timestamp::MAX).as_second();
        let next = Timestamp::from_second(next).unwrap_or(Timestamp::MAX);
        let n = self.failed;
        let message = format!("{cause}; connection attempts: {n}, next connection attempt: {next}");
        lost(CLIENT_CONNECTION_FAILED, message)
    }
}

/// What is told of a connection that stands.
pub(super) fn connected() -> Link {
    Link { active: true, reason: ACTIVE, message: "Connected".to_owned() }
}

/// What is told of one that does not.
pub(super) fn lost(reason: &'static str, message: String) -> Link {
    Link { active: false, reason, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_five_seconds_to_five_minutes_and_twenty_seconds() {
        let mut attempts = Attempts::new(Duration::from_secs(5));
        let pauses: Vec<u64> = (0..9).map(|_| attempts.fail().as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 320, 320]);
        attempts.reset();
        assert_eq!(attempts.fail().as_secs(), 5);
    }

    #[test]
    fn a_failure_says_how_often_and_until_when() {
        let mut attempts = Attempts::new(Duration::from_secs(5));
        attempts.fail();
        let pause = attempts.fail();
        let now = "2026-03-04T05:06:07.89Z".parse().expect("a time");
        let link = attempts.link("no answer", pause, now);
        assert!(!link.active);
        assert_eq!(link.reason, "ClientConnectionFailed");
        assert_eq!(
            link.message,
            "no answer; connection attempts: 2, next connection attempt: 2026-03-04T05:06:17Z"
        );
    }
}
