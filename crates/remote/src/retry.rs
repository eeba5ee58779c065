//! When a failed connection is retried, and the reported status (docs/reference/multikueue.md §1.2, §2.8). Pure.
//!
//! The pause doubles from 5 s to 320 s. A success or another configuration resets it.

use std::time::Duration;

use cluster::control::ConnectionStatus;
use crds::names::reasons::CLIENT_CONNECTION_FAILED;
use jiff::{SignedDuration, Timestamp};

/// The number of the last attempt that doubles the pause.
const LAST_DOUBLING: u32 = 7;

/// Consecutive failed attempts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionAttempts {
    first_pause: Duration,
    failed: u32,
}

impl ConnectionAttempts {
    /// No failed attempt yet.
    pub(super) fn new(first_pause: Duration) -> Self {
        Self { first_pause, failed: 0 }
    }

    /// Counts a failed attempt. Returns the pause before the next.
    pub(super) fn fail(&mut self) -> Duration {
        self.failed = self.failed.saturating_add(1);
        self.first_pause * (1 << (self.failed.min(LAST_DOUBLING) - 1))
    }

    /// Resets after a success or another configuration.
    pub(super) fn reset(&mut self) {
        self.failed = 0;
    }

    /// The status of a failed connection that is retried after `pause`.
    pub(super) fn status(&self, cause: &str, pause: Duration, now: Timestamp) -> ConnectionStatus {
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        // Whole seconds: upstream's message has the time in RFC 3339 without a fraction.
        let next = now.saturating_add(pause).unwrap_or(Timestamp::MAX).as_second();
        let next = Timestamp::from_second(next).unwrap_or(Timestamp::MAX);
        let n = self.failed;
        let message = format!("{cause}; connection attempts: {n}, next connection attempt: {next}");
        ConnectionStatus::lost(CLIENT_CONNECTION_FAILED, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_five_seconds_to_five_minutes_and_twenty_seconds() {
        let mut attempts = ConnectionAttempts::new(Duration::from_secs(5));
        let pauses: Vec<u64> = (0..9).map(|_| attempts.fail().as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 320, 320]);
        attempts.reset();
        assert_eq!(attempts.fail().as_secs(), 5);
    }

    #[test]
    fn a_failed_status_has_the_number_of_attempts_and_the_next_time() {
        let mut attempts = ConnectionAttempts::new(Duration::from_secs(5));
        attempts.fail();
        let pause = attempts.fail();
        let now = "2026-03-04T05:06:07.89Z".parse().expect("a time");
        let status = attempts.status("no answer", pause, now);
        assert!(!status.active);
        assert_eq!(status.reason, "ClientConnectionFailed");
        assert_eq!(
            status.message,
            "no answer; connection attempts: 2, next connection attempt: 2026-03-04T05:06:17Z"
        );
    }
}
