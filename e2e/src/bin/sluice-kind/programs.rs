//! Programs that are run for their effect or for their output.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs a program and shows its output to the user.
pub(crate) fn run<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Result<()> {
    let words = words(program, arguments);
    let status = Command::new(program).args(arguments).status();
    let status = status.with_context(|| words.clone())?;
    ensure!(status.success(), "{words} failed");
    Ok(())
}

/// Runs a program that reads this text from its standard input, which is not shown, and shows its output to the user.
pub(crate) fn feed<A: AsRef<OsStr>>(program: &Path, arguments: &[A], text: &str) -> Result<()> {
    let words = words(program, arguments);
    let mut command = Command::new(program);
    let started = command.args(arguments).stdin(Stdio::piped()).spawn();
    let mut child = started.with_context(|| words.clone())?;
    let input = child.stdin.take().with_context(|| words.clone())?;
    // A program that ends early says itself why.
    drop({ input }.write_all(text.as_bytes()));
    let status = child.wait().with_context(|| words.clone())?;
    ensure!(status.success(), "{words} failed");
    Ok(())
}

/// Runs a program and gives its output.
pub(crate) fn read<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Result<String> {
    let words = words(program, arguments);
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| words.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words} failed: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn words<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> String {
    let arguments = arguments.iter().map(|one| one.as_ref().to_string_lossy());
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    [name].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}
