//! What nodes, daemons and labs leave as it is on their machine: interfaces, routes, rules of the packet filter, mounts and settings of the
//! kernel.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
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

/// A line per route of IPv6 with ten words, of which the seventh and the eighth count its use.
const ROUTES_OF_IPV6: &str = "/proc/net/ipv6_route";

/// Programs that print the rules of the packet filter, where they are there.
const RULES: [&[&str]; 3] = [&["nft", "list", "ruleset"], &["iptables-save"], &["ip6tables-save"]];

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
        files.insert(ROUTES_OF_IPV6.to_owned(), without_use(&text(ROUTES_OF_IPV6)));
        files.extend(RULES.map(|command| (command.join(" "), without_counts(&printed(command)))));
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

/// Routes without the counters of their use, in order: another program may only move them.
fn without_use(routes: &str) -> String {
    let lines = routes.lines().map(|line| {
        let words = line.split_whitespace().enumerate();
        let words = words.filter(|(place, _)| ![6, 7].contains(place)).map(|(_, word)| word);
        words.collect::<Vec<_>>().join(" ")
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines.join("\n")
}

/// What a program prints. One that is not there, or may not look, prints nothing before and after.
fn printed(command: &[&str]) -> String {
    let Some((program, arguments)) = command.split_first() else { return String::new() };
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Rules without the counters of what they met, and without the comments, which have the time.
fn without_counts(rules: &str) -> String {
    let lines = rules.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let line = line.split(" [").next().unwrap_or(line);
        let mut words = line.split_whitespace().collect::<Vec<_>>();
        while let Some(at) =
            words.windows(5).position(|one| matches!(one, ["counter", "packets", _, "bytes", _]))
        {
            words.drain(at..at + 5);
        }
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_routes_are_compared_without_their_counters() {
        let saved =
            "# Generated at noon\n*filter\n:INPUT ACCEPT [12:3400]\n-A INPUT -i lo -j ACCEPT\n";
        assert_eq!(without_counts(saved), "*filter\n:INPUT ACCEPT\n-A INPUT -i lo -j ACCEPT");
        let listed = "\tip saddr 10.0.0.1 counter packets 3 bytes 180 drop\n";
        assert_eq!(without_counts(listed), "ip saddr 10.0.0.1 drop");
        let route = |used: &str| {
            format!("fd00 40 00 00 :: 00000100 0000000{used} 0000000{used} 00000001     eth0\n")
        };
        let fields = "fd00 40 00 00 :: 00000100 00000001 eth0";
        assert_eq!(without_use(&route("1")), without_use(&route("7")));
        assert_eq!(without_use(&route("1")), fields);
        assert_eq!(printed(&["/absent/program"]), "");
    }

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
