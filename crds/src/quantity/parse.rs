//! Parses a quantity.
//!
//! The text has a sign, digits, an optional fraction and a suffix. Decimal values are exact down to 1e-9 and rounded away from
//! zero below. Values with binary suffixes are capped at the largest i64.

use super::{Format, NANOS_PER_UNIT, Quantity};

/// Why a text is not a quantity. The wording is apimachinery's, which users see in refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text has another shape.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Shape,
    /// The digits are not a number.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// There is no such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// More digits than this leave upstream's fast path, which alone keeps a text as it was written.
const MAX_FAST_DIGITS: usize = 18;

/// Powers of ten beyond these cannot change the outcome: everything is rounded up to a billionth, or saturates.
const EXPONENT_BOUND: i32 = 60;

struct QuantityParts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

#[derive(Clone, Copy)]
enum Scale {
    Ten(i32),
    Two(u32),
}

pub(super) fn parse(text: &str) -> Result<Quantity, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Shape);
    }
    let parts = split(text)?;
    let (scale, format) = interpret(parts.suffix)?;
    let magnitude = match scale {
        Scale::Ten(exponent) => decimal(&parts, exponent)?,
        Scale::Two(shift) => binary(&parts, shift)?,
    };
    // A fraction of a byte has no binary suffix.
    let format = if format == Format::BinarySi && magnitude < NANOS_PER_UNIT {
        Format::DecimalSi
    } else {
        format
    };
    let written = kept_as_written(&parts, scale, format).then(|| text.into());
    Ok(Quantity { nanos: if parts.negative { -magnitude } else { magnitude }, format, written })
}

/// Cuts the text into its parts; leading zeros are dropped.
fn split(text: &str) -> Result<QuantityParts<'_>, ParseQuantityError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let (digits, rest) = take_while(unsigned, |c| c.is_ascii_digit());
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => take_while(rest, |c| c.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, tail) = take_while(suffix, |c| "eEinumkKMGTP".contains(c));
    let exponent = tail.strip_prefix(['+', '-']).unwrap_or(tail);
    if !exponent.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseQuantityError::Shape);
    }
    Ok(QuantityParts { negative, whole: digits.trim_start_matches('0'), fraction, suffix })
}

fn take_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !keep(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn interpret(suffix: &str) -> Result<(Scale, Format), ParseQuantityError> {
    let decimal = |exponent| (Scale::Ten(exponent), Format::DecimalSi);
    let binary = |shift| (Scale::Two(shift), Format::BinarySi);
    Ok(match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(ParseQuantityError::Suffix)?;
            let exponent: i32 = exponent.parse().map_err(|_| ParseQuantityError::Suffix)?;
            (Scale::Ten(exponent), Format::DecimalExponent)
        }
    })
}

/// digits · 10^exponent, in billionths.
fn decimal(parts: &QuantityParts<'_>, exponent: i32) -> Result<i128, ParseQuantityError> {
    let digits = unscaled(parts)?;
    let fraction = i32::try_from(parts.fraction.len()).unwrap_or(EXPONENT_BOUND);
    let power = exponent.clamp(-EXPONENT_BOUND, EXPONENT_BOUND) - fraction + 9;
    Ok(scale_by_ten(digits, power))
}

/// digits · 2^shift, in billionths, capped at the largest i64.
fn binary(parts: &QuantityParts<'_>, shift: u32) -> Result<i128, ParseQuantityError> {
    let cap = i128::from(i64::MAX) * NANOS_PER_UNIT;
    let digits = unscaled(parts)?;
    let fraction = i32::try_from(parts.fraction.len()).unwrap_or(EXPONENT_BOUND);
    // Multiplied first: 2^60 leaves 20 decimal digits below the maximum of i128.
    let shifted =
        digits.checked_mul(1_i128 << shift).map(|value| scale_by_ten(value, 9 - fraction));
    Ok(shifted.unwrap_or(cap).min(cap))
}

fn unscaled(parts: &QuantityParts<'_>) -> Result<i128, ParseQuantityError> {
    let digits = [parts.whole, parts.fraction].concat();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    // Every number of 38 digits fits into an i128; larger ones saturate.
    if digits.len() > 38 {
        return Ok(i128::MAX);
    }
    digits.parse().map_err(|_| ParseQuantityError::Numeric)
}

/// value · 10^power, rounded up; saturates.
fn scale_by_ten(value: i128, power: i32) -> i128 {
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match (power >= 0, factor) {
        (true, Some(factor)) => value.saturating_mul(factor),
        (true, None) => {
            if value == 0 {
                0
            } else {
                i128::MAX
            }
        }
        (false, Some(factor)) => value / factor + i128::from(value % factor != 0),
        (false, None) => i128::from(value != 0),
    }
}

/// Whether upstream keeps the text: few digits, and nothing that shorter digits or another suffix could express.
fn kept_as_written(parts: &QuantityParts<'_>, scale: Scale, format: Format) -> bool {
    let whole = if parts.whole.is_empty() { "0" } else { parts.whole };
    let digits = [whole, parts.fraction].concat();
    match scale {
        Scale::Ten(exponent) => {
            let power = exponent - i32::try_from(parts.fraction.len()).unwrap_or(EXPONENT_BOUND);
            digits.len() <= MAX_FAST_DIGITS
                && power >= -9
                && power % 3 == 0
                && !digits.ends_with("000")
                && !digits.starts_with('0')
        }
        Scale::Two(shift) => {
            let digits_left = 14 - i64::from(shift) * 3 / 10;
            format == Format::BinarySi
                && parts.fraction.is_empty()
                && i64::try_from(whole.len()).is_ok_and(|length| length <= digits_left)
                && whole.parse::<i64>().is_ok_and(|value| value & 0x07 != 0)
        }
    }
}
