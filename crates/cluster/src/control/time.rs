//! Conversions between the engine's time and that of API objects.

use engine::Time;
use jiff::Timestamp;

/// Nanoseconds since the epoch, as the engine counts.
pub(crate) fn engine_time(now: Timestamp) -> Time {
    Time(i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX))
}

/// The time as API objects have it.
pub(crate) fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_nanosecond(time.0.into()).unwrap_or(Timestamp::MAX)
}
