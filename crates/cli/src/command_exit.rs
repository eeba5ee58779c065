//! Exit codes (docs/sluicectl.md).

/// How a command ends that fails. Each failure says beside its variants which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CommandExit {
    /// A request failed, an object is missing or a file cannot be read.
    Failed = 1,
    /// The command line is wrong; clap uses the same code.
    Usage = 2,
    /// The state was not reached before the deadline. What was changed stays.
    TimedOut = 3,
    /// Refused before anything was changed.
    Refused = 4,
}

impl CommandExit {
    /// The exit code of the process.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}
