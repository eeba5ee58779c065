//! Amounts the way Kubernetes prints quantities: cpu from milli, memory in binary units where that is exact.

use crate::amount::Amount;

const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// An amount of `resource`.
pub fn format_quantity(resource: &str, amount: Amount) -> String {
    let value = amount.0;
    if resource == "cpu" {
        return if value % 1000 == 0 {
            scaled(value / 1000, 1000, &DECIMAL)
        } else {
            format!("{value}m")
        };
    }
    // As Kubernetes prints them: amounts of bytes in binary units.
    let binary = resource == "memory"
        || resource == "ephemeral-storage"
        || resource.starts_with("hugepages-");
    if binary && value % 1024 == 0 {
        scaled(value, 1024, &BINARY)
    } else {
        scaled(value, 1000, &DECIMAL)
    }
}

/// An amount that is missing, which may be more than can be counted.
pub(crate) fn format_missing(resource: &str, amount: Amount) -> String {
    if amount.is_unlimited() { "<unlimited>".to_owned() } else { format_quantity(resource, amount) }
}

fn scaled(mut value: i64, base: i64, suffixes: &[&str]) -> String {
    let mut power = 0;
    while value != 0 && value % base == 0 && power + 1 < suffixes.len() {
        value /= base;
        power += 1;
    }
    format!("{value}{}", suffixes[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_as_kubernetes_prints_them() {
        for (resource, amount, text) in [
            ("cpu", 1500, "1500m"),
            ("cpu", 2000, "2"),
            ("cpu", 2_000_000, "2k"),
            ("memory", 1 << 31, "2Gi"),
            ("memory", 500_000_000, "500M"),
            ("memory", 2_791_728_751, "2791728751"),
            ("nvidia.com/gpu", 1000, "1k"),
            ("pods", 0, "0"),
        ] {
            assert_eq!(format_quantity(resource, Amount(amount)), text);
        }
    }
}
