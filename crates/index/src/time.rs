//! Conversion between the API's and the engine's times.

use engine::Time;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;

/// An API time in the engine's terms; saturates.
pub(crate) fn time(at: &v1::Time) -> Time {
    from_timestamp(at.0)
}

pub(crate) fn from_timestamp(at: Timestamp) -> Time {
    let nanos = at.as_nanosecond();
    Time(i64::try_from(nanos).unwrap_or(if nanos > 0 { i64::MAX } else { i64::MIN }))
}

/// A time in the API's resolution: whole seconds.
pub(crate) fn to_seconds(at: Timestamp) -> v1::Time {
    v1::Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}
