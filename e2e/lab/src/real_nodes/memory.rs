//! Memory of the machine: a container that finds none ends in the middle of a test.

const INFO: &str = "/proc/meminfo";

const KIBIBYTES: u64 = 1 << 20;

/// What is lacking to programs that need so many gibibytes.
pub fn lacking(gibibytes: u64) -> Option<String> {
    let info = std::fs::read_to_string(INFO).unwrap_or_default();
    message(gibibytes, available(&info))
}

/// Kibibytes that can be had without swapping; none where the kernel does not say it.
fn available(info: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

fn message(gibibytes: u64, available: Option<u64>) -> Option<String> {
    let available = available.filter(|available| *available < gibibytes * KIBIBYTES)?;
    let tenths = available * 10 / KIBIBYTES;
    Some(format!(
        "{gibibytes} GiB of memory are needed, and {}.{} are free",
        tenths / 10,
        tenths % 10
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_compared_with_what_is_needed() {
        let info = "MemTotal:       8000000 kB\nMemAvailable:    3670016 kB\n";
        assert_eq!(available(info), Some(3_670_016));
        assert_eq!(message(3, available(info)), None);
        let said = message(4, available(info));
        assert_eq!(said.as_deref(), Some("4 GiB of memory are needed, and 3.5 are free"));
        assert_eq!(message(4, available("MemTotal: 1 kB\n")), None);
    }
}
