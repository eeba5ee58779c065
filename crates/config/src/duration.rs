//! Durations in Go's notation: `1h30m`, `-5s`, `1.5h`, `0`.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A duration in nanoseconds, possibly negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct GoDuration(i64);

impl GoDuration {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: u32) -> Self {
        Self(seconds as i64 * 1_000_000_000)
    }

    /// Parses Go's notation.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        // Go accepts zero without a unit, and no other number.
        if rest == "0" {
            return Some(Self::ZERO);
        }
        let nanos = sum(rest)?;
        Some(Self(sign * i64::try_from(nanos).ok()?))
    }

    /// The duration; none if it is negative.
    #[must_use]
    pub fn positive(self) -> Option<std::time::Duration> {
        u64::try_from(self.0).ok().map(std::time::Duration::from_nanos)
    }
}

fn sum(mut rest: &str) -> Option<u128> {
    let mut total: u128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        // Go refuses a number without a unit.
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        total = total.checked_add(scaled(number, nanos_of(unit)?)?)?;
        rest = tail;
    }
    Some(total)
}

/// `number` times `unit`, exactly, rounded down to a nanosecond.
fn scaled(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // 18 digits times the nanoseconds of an hour fit in 128 bits.
    if (whole.is_empty() && fraction.is_empty()) || whole.len() > 18 || fraction.len() > 18 {
        return None;
    }
    let digits = |text: &str| {
        // Go accepts `.5h` and `1.h`.
        if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() }
    };
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    digits(whole)?.checked_mul(unit)?.checked_add(digits(fraction)? * unit / scale)
}

fn nanos_of(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        // The prefix has two code points, and Go accepts both.
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        of_text(&String::deserialize(deserializer)?)
    }
}

fn of_text<E: Error>(text: &str) -> Result<GoDuration, E> {
    GoDuration::parse(text)
        .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &"a duration such as 1h30m"))
}

/// A number of nanoseconds, as Go decodes its own type of durations, or text.
pub(super) fn nanoseconds_or_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<GoDuration, D::Error> {
    deserializer.deserialize_any(NanosecondsOrText)
}

struct NanosecondsOrText;

impl Visitor<'_> for NanosecondsOrText {
    type Value = GoDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of nanoseconds, or a duration such as 1h30m")
    }

    fn visit_i64<E: Error>(self, nanos: i64) -> Result<GoDuration, E> {
        Ok(GoDuration(nanos))
    }

    fn visit_u64<E: Error>(self, nanos: u64) -> Result<GoDuration, E> {
        let nanos = i64::try_from(nanos);
        nanos.map(GoDuration).map_err(|_| E::custom("more nanoseconds than a duration has"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<GoDuration, E> {
        of_text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        let cases = [
            ("0", Some(0)),
            ("15s", Some(15_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            ("-2m", Some(-120_000_000_000)),
            (".5s", Some(500_000_000)),
            ("250ms", Some(250_000_000)),
            ("", None),
            ("5", None),
            ("s", None),
            ("5 s", None),
            ("1d", None),
            ("1.2.3s", None),
            ("99999999999h", None),
        ];
        for (text, nanos) in cases {
            assert_eq!(GoDuration::parse(text).map(|d| d.0), nanos, "{text:?}");
        }
    }
}
