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
    let apt = |packages: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.current_dir(directory).args(["-qq", "-o", "APT::Sandbox::User=root", "download"]);
        command::run(apt.args(packages))
    };
    if apt(packages).is_ok() {
        return Ok(());
    }
    command::run(Command::new("apt-get").args(["-qq", "update"]))?;
    apt(packages).or_else(|failed| one_by_one(packages, failed, apt))
}

/// Finds the package that fails. Debian removes a version when there is a newer one.
fn one_by_one(
    packages: &[&str],
    failed: CacheError,
    download: impl Fn(&[&str]) -> Result<(), CacheError>,
) -> Result<(), CacheError> {
    let fails = |package: &&str| Some(((*package).to_owned(), download(&[*package]).err()?));
    Err(match packages.iter().find_map(fails) {
        Some((package, failed)) => CacheError::Package { package, failed: failed.to_string() },
        None => failed,
    })
}

/// The files in order of their names: a file that two packages have is that of the later one.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, CacheError> {
    let entries = std::fs::read_dir(directory).map_err(io("list", directory))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = paths.map_err(io("list", directory))?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(command: &str) -> CacheError {
        CacheError::Command { command: command.to_owned(), output: "E: not found".to_owned() }
    }

    #[test]
    fn the_package_that_fails_is_named_with_what_helps() {
        let packages = ["runc=1.1", "containerd=1.6~ds1", "nftables=1.0"];
        let download = |names: &[&str]| match names {
            ["containerd=1.6~ds1"] => Err(refused("apt-get download containerd")),
            _ => Ok(()),
        };
        let said = one_by_one(&packages, refused("all"), download).unwrap_err().to_string();
        assert_eq!(
            said,
            "Debian package containerd=1.6~ds1 cannot be downloaded; `apt-cache policy containerd` names the version that there is, \
             and the file with the text \"containerd=1.6~ds1\" pins it: apt-get download containerd failed: E: not found"
        );
        let said = one_by_one(&packages, refused("all"), |_| Ok(())).unwrap_err().to_string();
        assert_eq!(said, "all failed: E: not found");
    }
}
