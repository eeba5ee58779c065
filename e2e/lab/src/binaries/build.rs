//! Builds programs with Go.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::BinariesError;

/// Stripped, and with the version that clients expect to read at `/version`.
pub(super) const LINKER_FLAGS: [&str; 5] = [
    "-s",
    "-w",
    "-X k8s.io/component-base/version.gitVersion=v1.36.3",
    "-X k8s.io/component-base/version.gitMajor=1",
    "-X k8s.io/component-base/version.gitMinor=36",
];

/// A cold build takes minutes, so it prints its progress.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// Builds programs of `module` into a directory.
pub(super) fn build_all(
    module: &Path,
    into: &Path,
    programs: &[&str],
    report: &dyn Fn(&str),
) -> Result<(), BinariesError> {
    let begun = Instant::now();
    report("building Kubernetes from its Go modules; minutes on a cold machine, once");
    for (done, program) in programs.iter().enumerate() {
        let one = Instant::now();
        report(&format!("building {program} ({} of {})", done + 1, programs.len()));
        build_one(module, into, program, &|| {
            report(&format!("still building {program}, {} s", one.elapsed().as_secs()));
        })?;
    }
    report(&format!("built in {} s", begun.elapsed().as_secs()));
    Ok(())
}

fn build_one(
    module: &Path,
    into: &Path,
    program: &str,
    alive: &dyn Fn(),
) -> Result<(), BinariesError> {
    let package = match program {
        "kwok" => "sigs.k8s.io/kwok/cmd/kwok".to_owned(),
        own => format!("./cmd/{own}"),
    };
    let output = into.join(program).display().to_string();
    let flags = LINKER_FLAGS.join(" ");
    let arguments = ["build", "-trimpath", "-ldflags", &flags, "-o", &output, &package];
    let command = command(module, &arguments);
    let (send, receive) = mpsc::channel();
    let runner = std::thread::spawn(move || {
        let _ = send.send(run(command));
    });
    let result = loop {
        match receive.recv_timeout(SIGN_OF_LIFE) {
            Ok(result) => break result,
            Err(mpsc::RecvTimeoutError::Timeout) => alive(),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                break Err(std::io::Error::other("the build's thread ended without a result"));
            }
        }
    };
    let _ = runner.join();
    finish(&arguments, result).map(drop)
}

/// Builds the program of a module that is no dependency of ours, with the versions that the module names.
pub(super) fn install(package: &str, into: &Path) -> Result<(), BinariesError> {
    let arguments = ["install", "-trimpath", package];
    let mut command = command(into, &arguments);
    command.env("GOBIN", into);
    finish(&arguments, run(command)).map(drop)
}

/// Runs the Go toolchain in `module` and returns its output.
pub(super) fn go(module: &Path, arguments: &[&str]) -> Result<String, BinariesError> {
    finish(arguments, run(command(module, arguments)))
}

fn command(module: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("go");
    command.current_dir(PathBuf::from(module)).args(arguments).stdin(Stdio::null());
    command
}

fn run(mut command: Command) -> std::io::Result<Output> {
    command.output()
}

fn finish(arguments: &[&str], result: std::io::Result<Output>) -> Result<String, BinariesError> {
    let arguments = arguments.join(" ");
    match result {
        Err(source) => Err(BinariesError::NoGo { arguments, source }),
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => {
            let output = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(BinariesError::Go { arguments, output })
        }
    }
}
