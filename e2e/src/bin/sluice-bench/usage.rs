//! CPU time and resident memory of a process, from /proc.

use anyhow::{Context, Result};

/// The kernel's unit of CPU time on all supported architectures.
const TICKS_PER_SECOND: f64 = 100.0;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessUsage {
    pub(crate) cpu_seconds: f64,
    pub(crate) resident_bytes: u64,
    /// The most that was resident since the process started.
    pub(crate) peak_bytes: u64,
}

impl ProcessUsage {
    /// Of a process that runs.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))
        };
        let (stat, status) = (read("stat")?, read("status")?);
        let cpu_seconds = cpu(&stat).with_context(|| format!("no CPU times in {stat:?}"))?;
        let bytes =
            |field| bytes(&status, field).with_context(|| format!("no {field} in the status"));
        Ok(Self { cpu_seconds, resident_bytes: bytes("VmRSS:")?, peak_bytes: bytes("VmHWM:")? })
    }

    /// CPU seconds since `before`.
    pub(crate) fn cpu_since(&self, before: &Self) -> f64 {
        self.cpu_seconds - before.cpu_seconds
    }
}

/// User and system time. The name before them may hold anything but ends with the last parenthesis.
fn cpu(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

fn bytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_spaces_does_not_shift_the_fields() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0";
        assert_eq!(cpu(stat), Some(2.0));
        let status = "Name:\tx\nVmHWM:\t   4096 kB\nVmRSS:\t   2048 kB\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(2048 * 1024));
        assert_eq!(bytes(status, "VmHWM:"), Some(4096 * 1024));
    }
}
