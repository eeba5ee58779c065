//! What nodes, daemons and labs leave as it is on their machine: interfaces, routes, mounts and settings of the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lab::real_nodes::init::KERNEL_SETTINGS;

/// Files that are compared as they are. Mounts are those of this process.
const FILES: [&str; 3] =
    ["/proc/net/route", "/proc/self/mountinfo", "/proc/sys/net/ipv4/ip_forward"];

/// How long a change of another program may last.
const PASSING: Duration = Duration::from_secs(5);

/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A line per interface: its name, a colon and counters.
const INTERFACES: &str = "/proc/net/dev";

/// The state at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostState(BTreeMap<String, String>);

impl HostState {
    /// As it is now.
    #[must_use]
    pub fn now() -> Self {
        let settings = KERNEL_SETTINGS.iter().map(|(name, _)| format!("/proc/sys/{name}"));
        let paths = FILES.map(str::to_owned).into_iter().chain(settings);
        // A kernel without IPv4 or without a setting has none of its file before and after.
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut files: BTreeMap<String, String> =
            paths.map(|path| (path.clone(), text(&path))).collect();
        files.insert(INTERFACES.to_owned(), names(&text(INTERFACES)));
        Self(files)
    }

    /// Nothing has changed since, but for what other programs of the machine change for a moment.
    ///
    /// # Errors
    /// If something has, and stays so for some seconds.
    pub fn ensure_unchanged(&self) -> Result<()> {
        self.unchanged_within(PASSING)
    }

    fn unchanged_within(&self, time: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            let compared = self.compare();
            if compared.is_ok() || begun.elapsed() >= time {
                return compared;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn compare(&self) -> Result<()> {
        let now = Self::now();
        for (path, before) in &self.0 {
            let after = now.0.get(path);
            ensure!(after == Some(before), "{path} was\n{before}\nand is\n{after:?}");
        }
        Ok(())
    }
}

/// The names of interfaces, without their counters.
fn names(devices: &str) -> String {
    let lines = devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_change_no_state_and_everything_else_does() {
        let devices = "Inter-| Receive\n face |bytes\n    lo: 12 0\n  eth0: 4 1\n";
        assert_eq!(names(devices), "lo eth0");
        let now = HostState::now();
        assert!(now.ensure_unchanged().is_ok());
        let mut other = now;
        other.0.insert(INTERFACES.to_owned(), "lo veth1".to_owned());
        let said = other.unchanged_within(Duration::ZERO).unwrap_err().to_string();
        assert!(said.starts_with("/proc/net/dev was\nlo veth1\n"), "{said}");
    }
}
