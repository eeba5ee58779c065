//! CPU time and resident memory of a process, from /proc.

use anyhow::{Context, Result};
use lab::identity;

/// The CPU time and the resident memory of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUsage {
    /// User and system time.
    pub cpu_seconds: f64,
    /// What is resident.
    pub resident_bytes: u64,
    /// The most that was resident since the process started.
    pub peak_bytes: u64,
}

impl ProcessUsage {
    /// Of a process that runs.
    ///
    /// # Errors
    /// If it has ended.
    pub fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/status");
        let status = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let cpu_seconds =
            identity::cpu_seconds(pid).with_context(|| format!("no CPU times of process {pid}"))?;
        let bytes =
            |field| bytes(&status, field).with_context(|| format!("no {field} in the status"));
        Ok(Self { cpu_seconds, resident_bytes: bytes("VmRSS:")?, peak_bytes: bytes("VmHWM:")? })
    }

    /// CPU seconds since `before`.
    #[must_use]
    pub fn cpu_since(&self, before: &Self) -> f64 {
        self.cpu_seconds - before.cpu_seconds
    }
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
    fn resident_and_peak_memory_are_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t   4096 kB\nVmRSS:\t   2048 kB\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(2048 * 1024));
        assert_eq!(bytes(status, "VmHWM:"), Some(4096 * 1024));
    }
}
