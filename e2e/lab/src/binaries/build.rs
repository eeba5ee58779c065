//! Builds the programs with Go, once per key.
//!
//! Two builders on one machine do not collide: the key's lock file is held while building, and the finished directory
//! appears by a rename, so a reader sees all programs or none. An interrupted build leaves a `.building` directory that
//! the next builder removes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{BinariesError, PROGRAMS, complete, io};

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

/// Builds `module` so that `directory` holds all programs.
pub(super) fn build_into(
    module: &Path,
    directory: &Path,
    report: &dyn Fn(&str),
) -> Result<(), BinariesError> {
    let parent = directory.parent().unwrap_or(directory);
    std::fs::create_dir_all(parent).map_err(io("create", parent))?;
    let lock_path = directory.with_extension("lock");
    let _lock = lock(&lock_path, report)?;
    if complete(directory) {
        return Ok(()); // Another process built it meanwhile.
    }
    let unfinished = directory.with_extension("building");
    remove(&unfinished)?;
    remove(directory)?;
    std::fs::create_dir_all(&unfinished).map_err(io("create", &unfinished))?;
    build_all(module, &unfinished, report)?;
    std::fs::rename(&unfinished, directory).map_err(io("rename", &unfinished))
}

fn lock(path: &Path, report: &dyn Fn(&str)) -> Result<File, BinariesError> {
    let file = File::create(path).map_err(io("create", path))?;
    if file.try_lock().is_err() {
        report("another process builds the control plane; waiting for it");
        file.lock().map_err(io("lock", path))?;
    }
    Ok(file)
}

fn remove(directory: &Path) -> Result<(), BinariesError> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("remove", directory)(error))
        }
        _ => Ok(()),
    }
}

fn build_all(module: &Path, into: &Path, report: &dyn Fn(&str)) -> Result<(), BinariesError> {
    let begun = Instant::now();
    report("building the control plane from its Go modules; minutes on a cold machine, once");
    for (done, program) in PROGRAMS.into_iter().enumerate() {
        let one = Instant::now();
        report(&format!("building {program} ({} of {})", done + 1, PROGRAMS.len()));
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
