//! Debian packages: downloaded and unpacked, never installed, so that no service starts and no script runs.
//!
//! The versions are pinned. They are those of Debian 12; apt of another release offers none of them and says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{CacheError, command, io};

/// Downloads packages, each as `NAME=VERSION`, and unpacks them into an existing directory.
///
/// # Errors
/// If apt does not have them, or one cannot be unpacked.
pub fn unpack(packages: &[&str], into: &Path) -> Result<(), CacheError> {
    let archives = into.join("archives");
    std::fs::create_dir(&archives).map_err(io("create", &archives))?;
    download(packages, &archives)?;
    for archive in files_in(&archives)? {
        command::run(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(into))?;
    }
    std::fs::remove_dir_all(&archives).map_err(io("remove", &archives))
}

/// Downloads all packages into `directory`. The lists of a fresh machine are empty or old, so a failure updates them once.
fn download(packages: &[&str], directory: &Path) -> Result<(), CacheError> {
    let mut apt = Command::new("apt-get");
    apt.current_dir(directory).args(["-qq", "-o", "APT::Sandbox::User=root", "download"]);
    apt.args(packages);
    if command::run(&mut apt).is_ok() {
        return Ok(());
    }
    command::run(Command::new("apt-get").args(["-qq", "update"]))?;
    command::run(&mut apt)
}

/// The files in order of their names: a file that two packages have is that of the later one.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, CacheError> {
    let entries = std::fs::read_dir(directory).map_err(io("list", directory))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = paths.map_err(io("list", directory))?;
    paths.sort();
    Ok(paths)
}
