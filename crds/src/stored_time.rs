//! Times as an API server stores them.
//!
//! Schemas accept every text of RFC 3339, also one that [`Timestamp`] cannot hold: the last day of the year 9999, which means "never"
//! to those who write it, and offsets beyond a day. An object with such a time decodes all the same; the time is the last one that
//! there is, or that of the text without its offset.

use std::fmt;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// Characters of a date and a time without its fraction.
const CIVIL: usize = "2026-01-01T00:00:00".len();

/// Decodes a time that may be absent.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Time>, D::Error> {
    let stored = Option::<StoredTime>::deserialize(deserializer)?;
    Ok(stored.map(|stored| Time(stored.0)))
}

struct StoredTime(Timestamp);

impl<'de> Deserialize<'de> for StoredTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(StoredTimeVisitor)
    }
}

struct StoredTimeVisitor;

impl Visitor<'_> for StoredTimeVisitor {
    type Value = StoredTime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time of RFC 3339")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StoredTime, E> {
        let exact = text.parse::<Timestamp>();
        exact.or_else(|error| nearest(text).ok_or_else(|| E::custom(error))).map(StoredTime)
    }
}

/// The time next to one that cannot be held; `None` if the text is none.
fn nearest(text: &str) -> Option<Timestamp> {
    let civil: DateTime = text.get(..CIVIL)?.parse().ok()?;
    Some(TimeZone::UTC.to_timestamp(civil).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_time_that_a_schema_accepts_decodes() {
        let decoded = |text: &str| deserialize(json!(text)).map(|time| time.expect("a time").0);
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        for (text, time) in [
            ("2026-01-01T00:00:00Z", at("2026-01-01T00:00:00Z")),
            ("2026-01-01T02:00:00.5+02:00", at("2026-01-01T00:00:00.5Z")),
            ("0000-01-01T00:00:00Z", at("0000-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59Z", Timestamp::MAX),
            ("9999-12-31T23:59:59.999999-23:59", Timestamp::MAX),
            ("2026-01-01T00:00:00+99:99", at("2026-01-01T00:00:00Z")),
        ] {
            assert_eq!(decoded(text).expect(text), time, "{text}");
        }
        assert_eq!(deserialize(json!(null)).expect("absent"), None);
        assert!(decoded("soon").is_err() && deserialize(json!(7)).is_err());
    }
}
