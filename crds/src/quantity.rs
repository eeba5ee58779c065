//! Resource quantities, exact and canonical like apimachinery's.
//!
//! A quantity is a decimal number with at most nine fractional digits (further ones are rounded away from zero) and a family
//! of suffixes. The canonical form has the largest suffix that is exact, and no fraction. As in Kueue, a text that is already
//! minimal is kept unchanged. Comparisons use the value only.

mod format;
mod parse;

use std::{borrow::Cow, cmp::Ordering, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use parse::ParseQuantityError;

/// The pattern of quantities in CRDs.
pub(crate) const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The family of suffixes of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `k`, `M`, `G`, … and `m`, `u`, `n`.
    #[default]
    DecimalSi,
    /// `Ki`, `Mi`, `Gi`, …
    BinarySi,
    /// `e3`, `e6`, …
    DecimalExponent,
}

/// A resource quantity.
#[derive(Clone, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    written: Option<Box<str>>,
}

impl Quantity {
    /// A whole number of base units.
    #[must_use]
    pub fn from_units(units: i64) -> Self {
        Self { nanos: i128::from(units) * NANOS_PER_UNIT, ..Self::default() }
    }

    /// A number of thousandths.
    #[must_use]
    pub fn from_milli(milli: i64) -> Self {
        Self { nanos: i128::from(milli) * NANOS_PER_MILLI, ..Self::default() }
    }

    /// A number of billionths, written with suffixes of this family.
    #[must_use]
    pub fn from_nanos(nanos: i128, format: Format) -> Self {
        Self { nanos, format, written: None }
    }

    /// The family of suffixes.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The value in billionths: exact.
    #[must_use]
    pub fn nanos(&self) -> i128 {
        self.nanos
    }

    /// Whole base units, rounded up; saturates.
    #[must_use]
    pub fn units(&self) -> i64 {
        saturating_ceil(self.nanos, NANOS_PER_UNIT)
    }

    /// Thousandths, rounded up; saturates.
    #[must_use]
    pub fn milli(&self) -> i64 {
        saturating_ceil(self.nanos, NANOS_PER_MILLI)
    }

    /// Whether the value is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether the value is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }
}

fn saturating_ceil(nanos: i128, per: i128) -> i64 {
    let ceil = nanos.div_euclid(per) + i128::from(nanos.rem_euclid(per) != 0);
    i64::try_from(ceil).unwrap_or(if ceil < 0 { i64::MIN } else { i64::MAX })
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::parse(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written {
            Some(text) => f.write_str(text),
            None => format::canonical(self.nanos, self.format, f),
        }
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntOrString)
    }
}

/// Accepts the int-or-string values of a CRD.
struct IntOrString;

impl de::Visitor<'_> for IntOrString {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity, as text or number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        // As in apimachinery, spaces are accepted in JSON and nowhere else.
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_units(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quantity, E> {
        value.to_string().parse().map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Quantity, E> {
        // The decimal text is exact, the binary fraction is not.
        value.to_string().parse().map_err(E::custom)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[cfg(test)]
mod tests;
