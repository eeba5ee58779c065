//! Formats a quantity in canonical form: the largest suffix without a fraction.

use std::fmt;

use super::{Format, NANOS_PER_UNIT};

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

pub(super) fn canonical(nanos: i128, format: Format, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if nanos == 0 {
        return f.write_str("0");
    }
    match format {
        Format::BinarySi if is_binary(nanos) => binary(nanos / NANOS_PER_UNIT, f),
        Format::BinarySi | Format::DecimalSi => decimal(nanos, f),
        Format::DecimalExponent => exponent(nanos, f),
    }
}

/// Small numbers and fractions read better without a binary suffix.
fn is_binary(nanos: i128) -> bool {
    nanos % NANOS_PER_UNIT == 0 && (nanos / NANOS_PER_UNIT).abs() >= 1024
}

fn binary(mut units: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut suffixes = BINARY.iter();
    let mut suffix = suffixes.next();
    while units % 1024 == 0 {
        let Some(next) = suffixes.next() else { break };
        suffix = Some(next);
        units /= 1024;
    }
    write!(f, "{units}{}", suffix.unwrap_or(&""))
}

fn decimal(nanos: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // Beyond `E` the digits grow; upstream drops the suffix there, and with it the value.
    let (digits, thousands) = without_thousands(nanos, DECIMAL.len() - 1);
    write!(f, "{digits}{}", DECIMAL.get(thousands).unwrap_or(&""))
}

fn exponent(nanos: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (digits, thousands) = without_thousands(nanos, usize::MAX);
    match i64::try_from(thousands).unwrap_or(i64::MAX) * 3 - 9 {
        0 => write!(f, "{digits}"),
        power => write!(f, "{digits}e{power}"),
    }
}

/// The value without its factors of 1000, and how many there were.
fn without_thousands(mut value: i128, at_most: usize) -> (i128, usize) {
    let mut thousands = 0;
    while thousands < at_most && value % 1000 == 0 {
        value /= 1000;
        thousands += 1;
    }
    (value, thousands)
}
