//! Ends a child with its parent.
//!
//! The kernel kills a process when its parent ends if the child has requested it (`PR_SET_PDEATHSIG`); "parent" is the *thread*
//! that started it. So children are started as `sluice-lab tether PARENT PROGRAM …`, which makes the request and then executes
//! the program (`execve` keeps the request). They must be started from a thread that lives as long as its process: the
//! supervisor's main thread, or the spawning thread of the harness.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The hidden subcommand of `sluice-lab`.
pub const SUBCOMMAND: &str = "tether";

/// Why a program could not be run on a tether.
#[derive(Debug, thiserror::Error)]
pub enum TetherError {
    /// The parent ended before the request.
    #[error("parent {0} is gone")]
    ParentGone(u32),
    /// The kernel refused.
    #[error("ask to die with the parent: {0}")]
    Refused(std::io::Error),
    /// The program could not be started.
    #[error("run {}: {source}", .program.display())]
    Exec {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A command that runs `program` tethered to this process. `sluice_lab` is the tool's own path.
pub fn command(sluice_lab: &Path, program: &Path) -> Command {
    let mut command = Command::new(sluice_lab);
    command.arg(SUBCOMMAND).arg(std::process::id().to_string()).arg(program);
    command
}

/// Becomes `program`; returns only when that fails.
pub fn become_program(parent: u32, program: &Path, arguments: &[OsString]) -> TetherError {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return TetherError::Refused(error.into());
    }
    // The parent may have ended between fork and request; the signal would never come.
    if getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()) != Some(parent) {
        return TetherError::ParentGone(parent);
    }
    let source = Command::new(program).args(arguments).exec();
    TetherError::Exec { program: program.to_owned(), source }
}
