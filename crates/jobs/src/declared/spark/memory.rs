//! Amounts of memory in the notation of Java (`512m`), in that of Kubernetes (`512Mi`).

/// Units of Java, which are powers of two, and their names in Kubernetes.
const UNITS: &[(&str, &str)] = &[
    ("kb", "Ki"),
    ("mb", "Mi"),
    ("gb", "Gi"),
    ("tb", "Ti"),
    ("pb", "Pi"),
    ("k", "Ki"),
    ("m", "Mi"),
    ("g", "Gi"),
    ("t", "Ti"),
    ("p", "Pi"),
    ("b", ""),
];

/// How an amount becomes one in the notation of Kubernetes.
pub(super) type MemoryReading = fn(&str) -> String;

/// The memory of Spark in the notation of Kubernetes. A bare number is one of mebibytes, as for Spark.
pub(super) fn of_spark(amount: &str) -> String {
    let amount = amount.trim();
    if is_bare(amount) { format!("{amount}Mi") } else { as_quantity(amount) }
}

/// Whether an amount is a number without a unit.
pub(super) fn is_bare(amount: &str) -> bool {
    let amount = amount.trim();
    !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit())
}

/// An amount in the notation of Kubernetes. What has no unit of Java stays.
pub(super) fn as_quantity(amount: &str) -> String {
    let lower = amount.trim().to_lowercase();
    let unit = UNITS.iter().find(|(unit, _)| lower.ends_with(unit));
    match unit.and_then(|(unit, name)| Some((lower.strip_suffix(unit)?.trim(), name))) {
        Some((number, name)) if number.parse::<f64>().is_ok() => format!("{number}{name}"),
        _ => amount.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_java_are_powers_of_two() {
        for (amount, quantity) in [
            ("512m", "512Mi"),
            ("1G", "1Gi"),
            ("2gb", "2Gi"),
            ("3tb", "3Ti"),
            ("64k", "64Ki"),
            ("100b", "100"),
            ("1Gi", "1Gi"),
            ("1024", "1024"),
            ("lots", "lots"),
        ] {
            assert_eq!(as_quantity(amount), quantity, "{amount}");
        }
    }

    #[test]
    fn a_bare_number_is_one_of_mebibytes_for_spark_alone() {
        assert_eq!([of_spark("1024"), as_quantity("1024")], ["1024Mi", "1024"]);
        for (amount, quantity) in [("512m", "512Mi"), ("1Gi", "1Gi"), ("", ""), ("1e3", "1e3")] {
            assert_eq!(of_spark(amount), quantity, "{amount}");
        }
    }
}
