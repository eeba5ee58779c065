//! When to try again after a failure, and when to give a stream up. Pure.
//!
//! Pauses double from half a second to half a minute. A stream that failed to start too often, or that the server says
//! is too old to continue, is given up: its place in the history is worth nothing, a new list is.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// After so long without a failure the next one is a first one: a watch on quiet objects shows no other sign of health.
const CALM: Duration = Duration::from_secs(120);
/// So many failures in a row give a stream up.
const PATIENCE: u32 = 5;

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The watch cannot go on from where it was.
    TooOld,
    /// Anything else.
    Other,
}

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) pause: Duration,
    /// Begin anew after the pause.
    pub(super) restart: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    in_a_row: u32,
    last: Option<Instant>,
}

impl Pace {
    /// An object came, or a list ended.
    pub(super) fn worked(&mut self) {
        self.in_a_row = 0;
    }

    /// Something failed.
    pub(super) fn failed(&mut self, failure: Failure, now: Instant) -> Advice {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= CALM) {
            self.in_a_row = 0;
        }
        self.last = Some(now);
        let pause = FIRST.saturating_mul(1 << self.in_a_row.min(16)).min(LONGEST);
        self.in_a_row = self.in_a_row.saturating_add(1);
        let restart = failure == Failure::TooOld || self.in_a_row.is_multiple_of(PATIENCE);
        Advice { pause, restart }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_every_fifth_failure_restarts() {
        let mut pace = Pace::default();
        let now = Instant::now();
        let advice = |pace: &mut Pace| {
            let Advice { pause, restart } = pace.failed(Failure::Other, now);
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
            assert_eq!(advice(&mut pace), expected, "failure {at}");
        }
        pace.worked();
        assert_eq!(advice(&mut pace), (500, false));
    }

    #[test]
    fn a_watch_that_is_too_old_restarts_at_once() {
        let advice = Pace::default().failed(Failure::TooOld, Instant::now());
        assert_eq!(advice, Advice { pause: FIRST, restart: true });
    }

    #[test]
    fn failures_far_apart_do_not_add_up() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        for _ in 0..20 {
            let advice = pace.failed(Failure::Other, now);
            assert_eq!(advice, Advice { pause: FIRST, restart: false });
            now += CALM;
        }
    }
}
