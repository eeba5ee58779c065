//! Durations as Go writes them: `1h30m`, `5m0s`, `1.5s`.

use std::{fmt::Write, time::Duration};

/// The longest duration of Go, which counts nanoseconds in 64 bits.
const LONGEST: Duration = Duration::from_nanos(i64::MAX.unsigned_abs());

/// Reads a duration; none if the text is no duration, is below zero, or is too long for Go.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0.0_f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        sum += number * seconds_of(unit)?;
        rest = next;
    }
    Duration::try_from_secs_f64(sum).ok().filter(|duration| *duration <= LONGEST)
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "h" => 3600.0,
        "m" => 60.0,
        "s" => 1.0,
        "ms" => 1e-3,
        // The micro sign, and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    })
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
}
