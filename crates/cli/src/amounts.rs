//! Quantities and ages as short texts.

use crds::quantity::{Format, Quantity};
use jiff::Timestamp;

const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// Binary suffixes from the largest; the last one has no suffix.
const BINARY: [(&str, u32); 6] =
    [("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10), ("", 0)];

/// `count` times a quantity; negative counts are zero.
#[must_use]
pub fn times(quantity: &Quantity, count: i32) -> Quantity {
    let nanos = quantity.nanos().saturating_mul(i128::from(count.max(0)));
    Quantity::from_nanos(nanos, quantity.format())
}

/// The sum of two quantities, in the format of the second.
#[must_use]
pub fn plus(sum: &Quantity, more: &Quantity) -> Quantity {
    Quantity::from_nanos(sum.nanos().saturating_add(more.nanos()), more.format())
}

/// A text for a table: the canonical form, but bytes with at most one decimal, rounded down.
#[must_use]
pub fn short(quantity: &Quantity) -> String {
    let units = quantity.nanos() / NANOS_PER_UNIT;
    if quantity.format() != Format::BinarySi || units < 1024 {
        return canonical(quantity);
    }
    let larger = |shift: u32| units >= 1_i128 << shift;
    let (suffix, shift) =
        BINARY.iter().find(|(_, shift)| larger(*shift)).copied().unwrap_or(("", 0));
    let tenths = units.saturating_mul(10) >> shift;
    match tenths % 10 {
        0 => format!("{}{suffix}", tenths / 10),
        tenth => format!("{}.{tenth}{suffix}", tenths / 10),
    }
}

/// The canonical form.
#[must_use]
pub fn canonical(quantity: &Quantity) -> String {
    Quantity::from_nanos(quantity.nanos(), quantity.format()).to_string()
}

/// A number of things: `1 Workload`, `2 Workloads`.
#[must_use]
pub fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// The time since `then` as kubectl writes ages: the largest unit, and a second one below ten of the first. A time in the
/// future has no age: clocks of two machines differ.
#[must_use]
pub fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = (now.as_second() - then.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0..2) => format!("{seconds}s"),
        (0, 0, 2..10) if seconds % 60 > 0 => format!("{minutes}m{}s", seconds % 60),
        (0, 0..3, _) => format!("{minutes}m"),
        (0..2, 3..10, _) if minutes % 60 > 0 => format!("{hours}h{}m", minutes % 60),
        (0..2, _, _) => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

/// The age since a time that may be unknown.
#[must_use]
pub fn age_of(now: Timestamp, then: Option<Timestamp>) -> String {
    then.map(|then| age(now, then)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shortened_and_never_rounded_up() {
        for (text, expected) in [
            ("64Gi", "64Gi"),
            ("67108863Ki", "63.9Gi"),
            ("1536Mi", "1.5Gi"),
            ("1023", "1023"),
            ("0", "0"),
            ("1500m", "1500m"),
            ("2Ti", "2Ti"),
            ("5k", "5k"),
        ] {
            let quantity: Quantity = text.parse().expect("a quantity");
            assert_eq!(short(&quantity), expected, "{text}");
        }
    }

    #[test]
    fn a_sum_keeps_its_format() {
        let quantity: Quantity = "512Mi".parse().expect("a quantity");
        let sum = plus(&Quantity::default(), &times(&quantity, 3));
        assert_eq!(canonical(&sum), "1536Mi");
        assert_eq!(canonical(&times(&quantity, -1)), "0");
    }

    #[test]
    fn ages_have_one_or_two_units() {
        let now = Timestamp::from_second(1_000_000_000).expect("a time");
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (180, "3m"),
            (3599, "59m"),
            (7200, "120m"),
            (11_700, "3h15m"),
            (36_000, "10h"),
            (172_800, "2d"),
        ] {
            let then = Timestamp::from_second(1_000_000_000 - seconds).expect("a time");
            assert_eq!(age(now, then), expected, "{seconds}");
        }
    }
}
