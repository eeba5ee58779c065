//! Durations as Go writes them: `1h30m`, `5m0s`, `1.5s`.

use std::{fmt::Write, time::Duration};

use jiff::SignedDuration;

/// Why Go reads no duration from a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoDurationError {
    /// A number is none, or the duration is too long for Go, which counts nanoseconds in 64 bits.
    #[error("time: invalid duration {}", quoted(.0))]
    Invalid(String),
    /// A number has no unit.
    #[error("time: missing unit in duration {}", quoted(.0))]
    MissingUnit(String),
    /// There is no such unit.
    #[error("time: unknown unit {} in duration {}", quoted(.unit), quoted(.text))]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

/// Reads a duration; none if the text is no duration, is below zero, or is too long for Go.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    Duration::try_from(parse_signed(text).ok()?).ok()
}

/// Reads a duration, which may be below zero.
///
/// # Errors
/// Those of Go.
pub fn parse_signed(text: &str) -> Result<SignedDuration, GoDurationError> {
    let invalid = || GoDurationError::Invalid(text.to_owned());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if unsigned.is_empty() {
        return Err(invalid());
    }
    let mut rest = unsigned;
    let mut sum = 0_i128;
    while !rest.is_empty() {
        let (part, next) = leading_part(rest, text)?;
        sum = sum.checked_add(part).ok_or_else(invalid)?;
        rest = next;
    }
    let sum = if text.starts_with('-') { -sum } else { sum };
    i64::try_from(sum).map(SignedDuration::from_nanos).map_err(|_| invalid())
}

/// The nanoseconds of the first number with its unit, and what follows them.
fn leading_part<'a>(rest: &'a str, text: &str) -> Result<(i128, &'a str), GoDurationError> {
    let invalid = || GoDurationError::Invalid(text.to_owned());
    let (whole, after) = leading_digits(rest);
    let (fraction, after) = after.strip_prefix('.').map_or(("", after), leading_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (unit, next) = after.split_at(after.find(is_number).unwrap_or(after.len()));
    let unit = nanoseconds_of(unit, text)?;
    Ok((i128::from(whole) * i128::from(unit) + part_of(fraction, unit), next))
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// A fraction of a unit, cut to nanoseconds.
fn part_of(fraction: &str, unit: u64) -> i128 {
    // Further digits are below a nanosecond of every unit.
    let digits = fraction.bytes().take(18).map(|digit| i128::from(digit - b'0'));
    let (parts, scale) = digits.fold((0, 1), |(parts, scale), it| (parts * 10 + it, scale * 10));
    i128::from(unit) * parts / scale
}

fn nanoseconds_of(unit: &str, text: &str) -> Result<u64, GoDurationError> {
    Ok(match unit {
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        // The micro sign, and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1000,
        "ns" => 1,
        "" => return Err(GoDurationError::MissingUnit(text.to_owned())),
        _ => {
            let (unit, text) = (unit.to_owned(), text.to_owned());
            return Err(GoDurationError::UnknownUnit { unit, text });
        }
    })
}

/// A text as Go quotes it in errors of durations: characters outside of ASCII as their bytes.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for byte in text.bytes() {
        let _ = match byte {
            b'"' | b'\\' => write!(quoted, "\\{}", char::from(byte)),
            0..b' ' | 0x80.. => write!(quoted, "\\x{byte:02x}"),
            _ => write!(quoted, "{}", char::from(byte)),
        };
    }
    quoted + "\""
}

/// Writes a duration: hours and minutes from the first that is not zero on.
#[must_use]
pub fn format(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let mut text = String::new();
    if hours > 0 {
        let _ = write!(text, "{hours}h");
    }
    if seconds >= 60 {
        let _ = write!(text, "{minutes}m");
    }
    let fraction = format!("{:09}", duration.subsec_nanos());
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let _ = write!(text, "{}{point}{fraction}s", seconds % 60);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_as_in_go() {
        for (text, seconds, written) in [
            ("1m", 60.0, "1m0s"),
            ("90s", 90.0, "1m30s"),
            ("1h", 3600.0, "1h0m0s"),
            ("1.5s", 1.5, "1.5s"),
            ("0s", 0.0, "0s"),
            ("0", 0.0, "0s"),
            ("1h2m3s", 3723.0, "1h2m3s"),
            ("+2s", 2.0, "2s"),
            ("500000\u{b5}s", 0.5, "0.5s"),
            ("500000\u{3bc}s", 0.5, "0.5s"),
        ] {
            let duration = parse(text).expect(text);
            assert_eq!(duration, Duration::from_secs_f64(seconds), "{text}");
            assert_eq!(format(duration), written);
        }
        for text in ["", "+", "5", "-1s", "s", "1d", "1..5s", "x", "9e99h", "2562048h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_duration_below_zero_is_read_as_such() {
        assert_eq!(parse_signed("-5m"), Ok(SignedDuration::from_mins(-5)));
        assert_eq!(parse_signed("-0"), Ok(SignedDuration::ZERO));
        assert_eq!(parse_signed(".5s1.25ms"), Ok(SignedDuration::from_micros(501_250)));
        let least = SignedDuration::from_nanos(i64::MIN);
        assert_eq!(parse_signed("-9223372036854775808ns"), Ok(least));
    }

    #[test]
    fn a_text_without_a_duration_has_an_error_of_go() {
        for (text, expected) in [
            ("soon", r#"invalid duration "soon""#),
            ("", r#"invalid duration """#),
            ("-", r#"invalid duration "-""#),
            ("+-5m", r#"invalid duration "+-5m""#),
            (".s", r#"invalid duration ".s""#),
            ("9223372036854775808ns", r#"invalid duration "9223372036854775808ns""#),
            ("99999999999999999999", r#"invalid duration "99999999999999999999""#),
            ("3000000h", r#"invalid duration "3000000h""#),
            ("5", r#"missing unit in duration "5""#),
            ("1..5s", r#"missing unit in duration "1..5s""#),
            ("1h5", r#"missing unit in duration "1h5""#),
            ("5d", r#"unknown unit "d" in duration "5d""#),
            ("5 m", r#"unknown unit " m" in duration "5 m""#),
            ("5\u{e4}\"\\\t", r#"unknown unit "\xc3\xa4\"\\\x09" in duration "5\xc3\xa4\"\\\x09""#),
        ] {
            let error = parse_signed(text).expect_err(text);
            assert_eq!(error.to_string(), format!("time: {expected}"));
        }
    }
}
