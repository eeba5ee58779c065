//! Conversion between the API's quantities and the engine's amounts.
//!
//! cpu is counted in milli, other resources in base units. Requests are rounded up, capacity is rounded down; both
//! saturate. Source: docs/reference/kueue.md §2.7.

use crds::quantity::{Format, Quantity};
use engine::{Amount, NanoAmount, explain::quantity::format_quantity};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
const MILLI_PER_CORE: u64 = 1000;
pub(crate) const CPU: &str = "cpu";

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

/// A recorded amount, to the billionth.
pub(crate) fn nano_amount(resource: &str, quantity: &Quantity) -> NanoAmount {
    NanoAmount(quantity.nanos().saturating_mul(NANOS_PER_UNIT / per_step(resource)))
}

/// A recorded amount as a quantity, rounded down to the billionth.
pub(crate) fn decimal_quantity(resource: &str, amount: NanoAmount) -> Quantity {
    let nanos = amount.0.div_euclid(NANOS_PER_UNIT / per_step(resource));
    Quantity::from_nanos(nanos, Format::DecimalSi)
}

/// The weight of one step of the engine from that of a unit of the API, both in 10^-9. Rounded up: a weight above 0 stays
/// above 0.
pub(crate) fn weight_of_step(resource: &str, weight: u64) -> u64 {
    if resource == CPU { weight.div_ceil(MILLI_PER_CORE) } else { weight }
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
    fn recorded_amounts_are_exact_to_the_billionth() {
        for (resource, text, nanos, written) in [
            ("cpu", "343750n", 343_750_000, "343750n"),
            ("cpu", "4", 4_000_000_000_000, "4"),
            ("nvidia.com/gpu", "990m", 990_000_000, "990m"),
            ("memory", "1Gi", NANOS_PER_UNIT << 30, "1073741824"),
        ] {
            let amount = nano_amount(resource, &of(text));
            assert_eq!(amount, NanoAmount(nanos), "{resource} {text}");
            assert_eq!(decimal_quantity(resource, amount).to_string(), written);
        }
    }

    #[test]
    fn a_weight_is_that_of_a_core() {
        for (resource, weight, of_step) in
            [("cpu", 1_000_000_000, 1_000_000), ("cpu", 1, 1), ("cpu", 0, 0), ("memory", 5, 5)]
        {
            assert_eq!(weight_of_step(resource, weight), of_step, "{resource} {weight}");
        }
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
