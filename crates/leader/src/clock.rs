//! The wall clock, watched for jumps.
//!
//! Control reads times of API objects and counts how long something lasts on one clock. A clock that was set, or a machine that slept,
//! would let every worker count as lost at once, or never. Control learns of each jump before it gets the time.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// What is a jump: a clock that is slewed differs less between two readings.
const JUMP: Duration = Duration::from_secs(1);

/// A reading of both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) wall: Timestamp,
    pub(crate) steady: Instant,
}

impl Reading {
    /// The present time.
    pub(crate) fn now() -> Self {
        Self { wall: Timestamp::now(), steady: Instant::now() }
    }

    /// How far the wall clock jumped since an earlier reading.
    pub(crate) fn jump_since(self, before: Self) -> Option<SignedDuration> {
        let lasted = self.steady.saturating_duration_since(before.steady);
        let lasted = SignedDuration::try_from(lasted).unwrap_or(SignedDuration::MAX);
        let jump = self.wall.duration_since(before.wall).checked_sub(lasted)?;
        (jump.unsigned_abs() >= JUMP).then_some(jump)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_runs_with_the_steady_one_does_not_jump() {
        let before = Reading::now();
        let after = |wall: i64, steady: u64| Reading {
            wall: before.wall + SignedDuration::from_millis(wall),
            steady: before.steady + Duration::from_millis(steady),
        };
        let jump = |wall, steady| after(wall, steady).jump_since(before);
        assert_eq!(jump(60_000, 60_000), None);
        assert_eq!(jump(60_900, 60_000), None, "slewed");
        assert_eq!(jump(3_660_000, 60_000), Some(SignedDuration::from_hours(1)));
        assert_eq!(jump(-3_540_000, 60_000), Some(SignedDuration::from_hours(-1)));
        assert_eq!(jump(0, 60_000), Some(SignedDuration::from_secs(-60)), "it stood still");
    }
}
