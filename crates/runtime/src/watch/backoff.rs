//! Backoff after failures of a watch, and when to restart it with a list. Pure.
//!
//! The delay doubles from half a second to half a minute. The stream restarts if the server reports its resourceVersion as
//! expired (410), and after every fifth failure in a row.

use std::time::{Duration, Instant};

const MIN_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// A failure this long after the previous one counts as the first: a watch on objects that do not change has no other sign
/// of success.
const RESET_AFTER: Duration = Duration::from_secs(120);
/// This many failures in a row restart the stream.
const FAILURES_BEFORE_RESTART: u32 = 5;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchFailure {
    /// 410: the resourceVersion is expired.
    TooOld,
    /// A list does not end.
    Endless,
    /// Any other failure.
    Other,
}

/// How to continue after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) pause: Duration,
    /// Restart the stream with a list after the delay.
    pub(super) restart: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WatchBackoff {
    in_a_row: u32,
    last: Option<Instant>,
}

impl WatchBackoff {
    /// An event of the watch was delivered, or a list was completed. An object of a list is no sign of success: the list may not end.
    pub(super) fn succeeded(&mut self) {
        self.in_a_row = 0;
    }

    /// The stream failed.
    pub(super) fn failed(&mut self, failure: WatchFailure, now: Instant) -> Retry {
        let apart =
            self.last.is_some_and(|last| now.saturating_duration_since(last) >= RESET_AFTER);
        // An endless list itself takes longer than that, and its time is no sign of success.
        if apart && failure != WatchFailure::Endless {
            self.in_a_row = 0;
        }
        self.last = Some(now);
        // A shift by the width of the number would overflow; the maximum is reached long before.
        let pause = MIN_DELAY.saturating_mul(1 << self.in_a_row.min(16)).min(MAX_DELAY);
        self.in_a_row = self.in_a_row.saturating_add(1);
        let restart = failure == WatchFailure::TooOld
            || self.in_a_row.is_multiple_of(FAILURES_BEFORE_RESTART);
        Retry { pause, restart }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_every_fifth_failure_restarts() {
        let mut backoff = WatchBackoff::default();
        let now = Instant::now();
        let retry = |backoff: &mut WatchBackoff| {
            let Retry { pause, restart } = backoff.failed(WatchFailure::Other, now);
            (pause.as_millis(), restart)
        };
        let expected = [
            (500, false),
            (1_000, false),
            (2_000, false),
            (4_000, false),
            (8_000, true),
            (16_000, false),
            (30_000, false),
            (30_000, false),
            (30_000, false),
            (30_000, true),
        ];
        for (at, expected) in expected.into_iter().enumerate() {
            assert_eq!(retry(&mut backoff), expected, "failure {at}");
        }
        backoff.succeeded();
        assert_eq!(retry(&mut backoff), (500, false));
    }

    #[test]
    fn an_expired_resource_version_restarts_at_once() {
        let retry = WatchBackoff::default().failed(WatchFailure::TooOld, Instant::now());
        assert_eq!(retry, Retry { pause: MIN_DELAY, restart: true });
    }

    #[test]
    fn endless_lists_add_up_however_long_they_take() {
        let mut backoff = WatchBackoff::default();
        let mut now = Instant::now();
        let pauses = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
        for pause in pauses.map(Duration::from_millis) {
            assert_eq!(backoff.failed(WatchFailure::Endless, now).pause, pause);
            now += RESET_AFTER * 2;
        }
    }

    #[test]
    fn failures_far_apart_do_not_add_up() {
        let mut backoff = WatchBackoff::default();
        let mut now = Instant::now();
        for _ in 0..20 {
            let retry = backoff.failed(WatchFailure::Other, now);
            assert_eq!(retry, Retry { pause: MIN_DELAY, restart: false });
            now += RESET_AFTER;
        }
    }
}
