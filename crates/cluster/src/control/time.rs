//! Conversions between the engine's time and that of API objects.

use std::time::Duration;

use engine::Time;
use jiff::{SignedDuration, Timestamp};

/// In nanoseconds.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// The nanoseconds of a duration.
pub(crate) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// The nanoseconds by which a clock jumped.
pub(crate) fn signed_nanos(by: SignedDuration) -> i64 {
    let end = if by.is_negative() { i64::MIN } else { i64::MAX };
    i64::try_from(by.as_nanos()).unwrap_or(end)
}

/// Nanoseconds since the epoch, as the engine counts.
pub(crate) fn engine_time(now: Timestamp) -> Time {
    Time(i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX))
}

/// The time as API objects have it.
pub(crate) fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_nanosecond(time.0.into()).unwrap_or(Timestamp::MAX)
}

/// A pause that doubles with each of `times` earlier ones: at most 1024 times `first`, and at most the longest.
pub(crate) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << times.min(10)).min(longest)
}

/// A time, moved with a clock that jumped.
pub(crate) fn moved(at: Timestamp, by: SignedDuration) -> Timestamp {
    let end = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    at.checked_add(by).unwrap_or(end)
}
