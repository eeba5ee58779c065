//! Between the API's times and the engine's.

use engine::Time;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;

/// An instant of an object, as the engine compares it; saturates.
pub(crate) fn time(at: &v1::Time) -> Time {
    from_timestamp(at.0)
}

pub(crate) fn from_timestamp(at: Timestamp) -> Time {
    let nanos = at.as_nanosecond();
    Time(i64::try_from(nanos).unwrap_or(if nanos > 0 { i64::MAX } else { i64::MIN }))
}

/// An instant as objects can hold it: whole seconds.
pub(crate) fn to_seconds(at: Timestamp) -> v1::Time {
    v1::Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}
