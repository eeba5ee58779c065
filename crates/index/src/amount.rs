//! Conversion between the API's quantities and the engine's amounts.
//!
//! cpu is counted in milli, other resources in base units. Requests are rounded up, capacity is rounded down; both
//! saturate. Source: docs/reference/kueue.md §2.7.

use crds::quantity::Quantity;
use engine::{Amount, explain::quantity::format_quantity};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
const CPU: &str = "cpu";

/// Amount of a request or quota, rounded up.
pub(crate) fn amount(resource: &str, quantity: &Quantity) -> Amount {
    from_nanos(resource, quantity.nanos())
}

/// Like [`amount`], from billionths.
pub(crate) fn from_nanos(resource: &str, nanos: i128) -> Amount {
    let per = per_step(resource);
    saturate(nanos.div_euclid(per) + i128::from(nanos.rem_euclid(per) != 0))
}

/// Amount of capacity, rounded down.
pub(crate) fn allocatable_amount(resource: &str, quantity: &Quantity) -> Amount {
    saturate(quantity.nanos().div_euclid(per_step(resource)))
}

/// An amount as a quantity in canonical form.
pub(crate) fn quantity(resource: &str, amount: Amount) -> Quantity {
    let exact = || match resource {
        CPU => Quantity::from_milli(amount.0),
        _ => Quantity::from_units(amount.0),
    };
    format_quantity(resource, amount).parse().unwrap_or_else(|_| exact())
}

/// An amount in the units of the API: cpu in cores.
pub(crate) fn float(resource: &str, amount: Amount) -> f64 {
    let steps = amount.0 as f64;
    if resource == CPU { steps / 1000.0 } else { steps }
}

fn per_step(resource: &str) -> i128 {
    if resource == CPU { NANOS_PER_MILLI } else { NANOS_PER_UNIT }
}

fn saturate(value: i128) -> Amount {
    Amount(i64::try_from(value).unwrap_or(if value > 0 { i64::MAX } else { i64::MIN }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Quantity {
        text.parse().expect("a quantity")
    }

    #[test]
    fn requests_are_rounded_up_and_saturate() {
        for (resource, text, wanted) in [
            ("cpu", "1500m", 1500),
            ("cpu", "0.25", 250),
            ("cpu", "100u", 1),
            ("cpu", "10E", i64::MAX),
            ("memory", "1.5Gi", 3 << 29),
            ("memory", "100m", 1),
            ("nvidia.com/gpu", "1e3", 1000),
        ] {
            assert_eq!(amount(resource, &of(text)), Amount(wanted), "{resource} {text}");
        }
    }

    #[test]
    fn capacity_is_rounded_down() {
        assert_eq!(allocatable_amount("cpu", &of("1999u")), Amount(1));
        assert_eq!(allocatable_amount("memory", &of("1500m")), Amount(1));
    }

    #[test]
    fn quantities_are_in_canonical_form() {
        for (resource, amount, text) in [
            ("cpu", 2000, "2"),
            ("cpu", 1500, "1500m"),
            ("memory", 2 << 30, "2Gi"),
            ("pods", 3, "3"),
        ] {
            assert_eq!(quantity(resource, Amount(amount)).to_string(), text);
        }
    }
}
