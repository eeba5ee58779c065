use proptest::prelude::*;

use super::{NANOS_PER_UNIT, Quantity};

/// The results of apimachinery, recorded by `go run ./cmd/quantity-table` in the lab's Go module.
const TABLE: &str = include_str!("table.tsv");

const THOUSAND_E: i128 = 1_000_000_000_000_000_000_000 * NANOS_PER_UNIT;

#[test]
fn parsing_and_formatting_equal_apimachinery() {
    let mut rows = 0;
    for row in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let (text, answer) = row.split_once('\t').expect("two columns");
        rows += 1;
        match text.trim().parse::<Quantity>() {
            // Upstream drops the suffix of whole thousands of E, and with it the value.
            Ok(quantity) if quantity.nanos().abs() >= THOUSAND_E => {}
            Ok(quantity) => {
                let written = answer.split('\t').next().expect("a text");
                // Upstream keeps the text before it trims it.
                assert_eq!(quantity.to_string(), written, "{text}");
            }
            Err(error) => assert_eq!(format!("!{error}"), answer, "{text}"),
        }
    }
    assert!(rows > 500, "the table has {rows} rows");
}

#[test]
fn whole_units_and_milli_are_rounded_up() {
    for row in TABLE.lines().filter(|line| !line.starts_with('#') && !line.contains('!')) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [text, _, units, milli] = columns[..] else { panic!("four columns: {row}") };
        let quantity: Quantity = text.trim().parse().expect(text);
        // Apimachinery overflows where this type saturates, and rounds negative fractions away from zero only below one unit.
        if quantity.is_negative()
            || quantity.nanos() / NANOS_PER_UNIT >= i128::from(i64::MAX) / 1000
        {
            continue;
        }
        assert_eq!(quantity.units().to_string(), units, "{text}");
        assert_eq!(quantity.milli().to_string(), milli, "{text}");
    }
}

#[test]
fn values_beyond_the_range_saturate() {
    let huge: Quantity = "1e30".parse().expect("a quantity");
    assert_eq!(huge.units(), i64::MAX);
    let low: Quantity = "-1e30".parse().expect("a quantity");
    assert_eq!(low.milli(), i64::MIN);
}

#[test]
fn numbers_are_parsed_like_text() {
    let quantity: Quantity = serde_json::from_str("5").expect("an integer");
    assert_eq!(quantity.to_string(), "5");
    let quantity: Quantity = serde_json::from_str("0.5").expect("a fraction");
    assert_eq!(quantity.to_string(), "500m");
}

fn text() -> impl Strategy<Value = String> {
    let suffix = prop::sample::select(vec![
        "", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "e-3", "E2",
    ]);
    ("-?[0-9]{1,9}(\\.[0-9]{0,6})?", suffix).prop_map(|(digits, suffix)| digits + suffix)
}

proptest! {
    #[test]
    fn writing_loses_nothing(text in text()) {
        let quantity: Quantity = text.parse().expect("generated");
        let again: Quantity = quantity.to_string().parse().expect("canonical");
        prop_assert_eq!(again.nanos(), quantity.nanos());
    }

    /// A binary quantity without a factor of 1024 is printed without a suffix, and such a text is decimal: `312.5Ki`, `320000`,
    /// `320k`. From then on nothing changes.
    #[test]
    fn formatting_ends(text in text()) {
        let format = |text: String| text.parse::<Quantity>().expect("a quantity").to_string();
        let twice = format(format(text));
        prop_assert_eq!(format(twice.clone()), twice);
    }

    #[test]
    fn quantities_are_ordered_by_value(a in text(), b in text()) {
        let (a, b): (Quantity, Quantity) = (a.parse().expect("a"), b.parse().expect("b"));
        prop_assert_eq!(a.cmp(&b), a.nanos().cmp(&b.nanos()));
        prop_assert_eq!(a == b, a.nanos() == b.nanos());
    }
}
