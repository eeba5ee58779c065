//! Kubernetes quantities as amounts: cpu in milli, everything else in units, rounded up, saturating.

use anyhow::{Context, bail};
use engine::Amount;

/// The amount of `resource` that `text` says.
pub(crate) fn amount(resource: &str, text: &str) -> anyhow::Result<Amount> {
    let scale = if resource == "cpu" { 1000 } else { 1 };
    scaled(text, scale).map(Amount)
}

/// How many billionths `text` says.
pub(crate) fn nanos(text: &str) -> anyhow::Result<i128> {
    product(text, NANOS)
}

/// The amount of `resource` that so many billionths are.
pub(crate) fn from_nanos(resource: &str, nanos: i128) -> Amount {
    let step = if resource == "cpu" { NANOS / 1000 } else { NANOS };
    Amount(saturate(nanos.div_euclid(step) + i128::from(nanos.rem_euclid(step) != 0)))
}

const NANOS: i128 = 1_000_000_000;

/// `text` times `scale`, rounded up to an integer; saturating.
pub(crate) fn scaled(text: &str, scale: i128) -> anyhow::Result<i64> {
    product(text, scale).map(saturate)
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value > 0 { i64::MAX } else { i64::MIN })
}

fn product(text: &str, scale: i128) -> anyhow::Result<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-' && c != '+');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let mantissa: i128 = digits.parse().with_context(|| format!("quantity {text:?}"))?;
    let mut denominator = 10_i128.pow(u32::try_from(fraction.len())?);
    let mut numerator = mantissa.checked_mul(scale).context("quantity too long")?;
    match factor(suffix)? {
        Factor::Times(times) => numerator = numerator.saturating_mul(times),
        Factor::Over(over) => denominator *= over,
    }
    Ok(numerator.div_euclid(denominator) + i128::from(numerator.rem_euclid(denominator) != 0))
}

enum Factor {
    Times(i128),
    Over(i128),
}

fn factor(suffix: &str) -> anyhow::Result<Factor> {
    let index = |all: &str, one: &str| all.split(' ').position(|known| known == one);
    if suffix.is_empty() {
        return Ok(Factor::Times(1));
    }
    if let Some(power) = index("m u n", suffix) {
        return Ok(Factor::Over(1000_i128.pow(u32::try_from(power + 1)?)));
    }
    if let Some(power) = index("k M G T P E", suffix) {
        return Ok(Factor::Times(1000_i128.pow(u32::try_from(power + 1)?)));
    }
    if let Some(power) = index("Ki Mi Gi Ti Pi Ei", suffix) {
        return Ok(Factor::Times(1024_i128.pow(u32::try_from(power + 1)?)));
    }
    if let Some(exponent) = suffix.strip_prefix(['e', 'E']) {
        let exponent: i32 = exponent.parse().with_context(|| format!("exponent {suffix:?}"))?;
        let power = 10_i128.pow(exponent.unsigned_abs().min(30));
        return Ok(if exponent < 0 { Factor::Over(power) } else { Factor::Times(power) });
    }
    bail!("unknown suffix {suffix:?}")
}

#[test]
fn quantities_are_rounded_up_and_saturate() -> anyhow::Result<()> {
    assert_eq!(amount("cpu", "1500m")?, Amount(1500));
    assert_eq!(amount("cpu", "0.25")?, Amount(250));
    assert_eq!(amount("memory", "1.5Gi")?, Amount(3 << 29));
    assert_eq!(amount("memory", "100m")?, Amount(1));
    assert_eq!(amount("cpu", "10E")?, Amount::UNLIMITED);
    assert_eq!(amount("nvidia.com/gpu", "1e3")?, Amount(1000));
    Ok(())
}
