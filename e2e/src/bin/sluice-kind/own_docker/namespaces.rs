//! Starts daemon and command in new namespaces, and waits until all of their processes have ended.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context, Result};
use lab::ProcessId;
use lab::identity::children;
use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::inside::SUBCOMMAND;

/// `--kill-child`: process 1 ends with unshare, and the kernel ends its namespace's processes with it.
const UNSHARE: [&str; 8] =
    ["unshare", "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"];

/// The exit code after an interruption.
const INTERRUPTED: u8 = 130;

/// Runs the command beside a daemon in `directory`. Returns its exit code.
pub(super) fn run(
    directory: &Path,
    command: &[OsString],
    variables: &[(&'static str, OsString)],
) -> Result<ExitCode> {
    // Processes that end with their parent end with its thread: this one stays.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let mut unshare = self::command(directory, command, variables)?;
        let mut unshare = unshare.spawn().context("starting unshare")?;
        tokio::select! {
            ended = unshare.wait() => return Ok(exit_code(ended?)),
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        println!("interrupted; ending the command and Docker's daemon");
        end(&mut unshare).await?;
        Ok(ExitCode::from(INTERRUPTED))
    })
}

fn command(
    directory: &Path,
    command: &[OsString],
    variables: &[(&'static str, OsString)],
) -> Result<Command> {
    // It ends with this process, however that ends.
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--pdeathsig", "KILL"]).args(UNSHARE).arg(std::env::current_exe()?);
    setpriv.arg(SUBCOMMAND).arg(directory).arg("--").args(command);
    setpriv.envs(variables.iter().map(|(name, value)| (name, value)));
    Ok(setpriv)
}

/// Ends process 1. unshare waits for it, and the kernel lets it go after all other processes of its namespace.
async fn end(unshare: &mut Child) -> Result<()> {
    let first = unshare.id().map(children).unwrap_or_default();
    let first: Vec<ProcessId> = first.into_iter().filter_map(ProcessId::of).collect();
    if first.is_empty() {
        unshare.start_kill().context("ending unshare")?;
    }
    for process in first {
        process.signal(Signal::KILL).context("ending the daemon's process 1")?;
    }
    unshare.wait().await.context("waiting for the end of the daemon").map(drop)
}

/// As a shell has it: 128 and the number of the signal that ended a process.
pub(super) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        for (status, code) in [(0, 0), (3 << 8, 3), (9, 137), (15, 143)] {
            let passed = exit_code(ExitStatus::from_raw(status));
            assert_eq!(format!("{passed:?}"), format!("{:?}", ExitCode::from(code)));
        }
    }
}
