//! The revision of the sources.

use std::{path::Path, process::Command};

use anyhow::{Context, ensure};

/// The commit that is checked out, with `-dirty` if files differ from it.
///
/// # Errors
/// If the folder is not in a git repository.
pub fn of(workspace: &Path) -> anyhow::Result<String> {
    let commit = git(workspace, &["rev-parse", "HEAD"]);
    let commit = commit.context("no revision; give one with --revision")?;
    let changed = !git(workspace, &["status", "--porcelain"])?.is_empty();
    Ok(if changed { format!("{commit}-dirty") } else { commit })
}

fn git(workspace: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let what = || format!("git {}", arguments.join(" "));
    let output = Command::new("git").arg("-C").arg(workspace).args(arguments).output();
    let output = output.with_context(what)?;
    ensure!(output.status.success(), "{}: {}", what(), output.status);
    Ok(String::from_utf8(output.stdout).with_context(what)?.trim().to_owned())
}
