//! The identity of a process, which distinguishes it from another one with the same pid.
//!
//! The kernel reuses pids; the pair of pid and start time (field 22 of `/proc/<pid>/stat`) is unique until the machine
//! restarts. Signals use a pidfd that is opened *before* the start time is compared, so they reach the compared process.

use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The kernel's unit of CPU time on all supported architectures.
const TICKS_PER_SECOND: f64 = 100.0;

/// A pid and when it started, in the kernel's ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    pid: u32,
    start_time: u64,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It exists and is not stopped.
    Running,
    /// It was stopped by a signal.
    Paused,
    /// The process ended, or is a zombie.
    Gone,
}

impl ProcessId {
    /// The process that has this pid now.
    pub fn of(pid: u32) -> Option<Self> {
        let start_time = Stat::read(pid)?.start_time;
        Some(Self { pid, start_time })
    }

    /// This process itself.
    pub fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// The number.
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// The current state.
    pub fn liveness(self) -> Liveness {
        match Stat::read(self.pid) {
            Some(stat) if stat.start_time == self.start_time => match stat.state {
                'T' | 't' => Liveness::Paused,
                'Z' | 'X' | 'x' => Liveness::Gone,
                _ => Liveness::Running,
            },
            _ => Liveness::Gone,
        }
    }

    /// Whether it exists, paused or not.
    pub fn is_alive(self) -> bool {
        self.liveness() != Liveness::Gone
    }

    /// Sends a signal. `false` if the process has ended.
    pub fn signal(self, signal: Signal) -> std::io::Result<bool> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw)
        else {
            return Ok(false);
        };
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(Errno::SRCH) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if !self.is_alive() {
            return Ok(false);
        }
        match pidfd_send_signal(descriptor, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns when it has ended.
    pub fn wait_for_end(self) {
        while self.is_alive() {
            std::thread::yield_now();
        }
    }

    /// The resident memory in bytes; zero if the process has ended.
    pub fn resident(self) -> u64 {
        if !self.is_alive() {
            return 0;
        }
        let status = std::fs::read_to_string(proc_file(self.pid, "status")).unwrap_or_default();
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}

/// User and system time of a process in seconds; none if it has ended.
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    Some(Stat::read(pid)?.cpu_seconds)
}

/// The pids of the children of a process; none if it has ended.
pub fn children(parent: u32) -> Vec<u32> {
    let file = proc_file(parent, &format!("task/{parent}/children"));
    let children = std::fs::read_to_string(file).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

struct Stat {
    state: char,
    /// User and system time.
    cpu_seconds: f64,
    start_time: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(proc_file(pid, "stat")).ok()?)
    }

    /// The second field is the program's name in parentheses and may itself hold spaces and parentheses.
    fn parse(line: &str) -> Option<Self> {
        let (_, after_name) = line.rsplit_once(") ")?;
        let mut fields = after_name.split(' ');
        let state = fields.next()?.chars().next()?;
        let user: f64 = fields.nth(10)?.parse().ok()?;
        let system: f64 = fields.next()?.parse().ok()?;
        let cpu_seconds = (user + system) / TICKS_PER_SECOND;
        let start_time = fields.nth(6)?.parse().ok()?;
        Some(Self { state, cpu_seconds, start_time })
    }
}

fn proc_file(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.state, stat.start_time), ('S', 777));
    }

    #[test]
    fn a_recycled_pid_is_another_process() {
        let own = ProcessId::own().unwrap();
        assert_eq!(own.liveness(), Liveness::Running);
        assert!(own.resident() > 0);
        let earlier = ProcessId { start_time: own.start_time - 1, ..own };
        assert_eq!(earlier.liveness(), Liveness::Gone);
        assert!(!earlier.signal(Signal::KILL).unwrap(), "the signal must not reach this process");
    }

    #[test]
    fn a_killed_process_counts_as_ended_before_it_is_reaped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        assert!(id.signal(Signal::KILL).unwrap());
        child.wait().unwrap();
        assert_eq!(id.liveness(), Liveness::Gone);
        assert!(!id.signal(Signal::KILL).unwrap());
    }

    #[test]
    fn a_process_name_with_spaces_does_not_shift_the_cpu_times() {
        let line = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 777 20";
        assert_eq!(Stat::parse(line).map(|stat| stat.cpu_seconds), Some(2.0));
    }
}
