//! The Debian packages of a real node: downloaded and unpacked, never installed, so that no service starts.
//!
//! The versions are pinned. They are those of Debian 12; apt of another release offers none of them and says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{BinariesError, io, once};

/// Name and version of each package.
const PACKAGES: [(&str, &str); 8] = [
    ("busybox-static", "1:1.35.0-4+deb12u1+b1"),
    ("containerd", "1.6.20~ds1-1+deb12u3"),
    ("containernetworking-plugins", "1.1.1+ds1-3+b5"),
    ("libnftables1", "1.0.6-2+deb12u2"),
    ("libnftnl11", "1.2.4-2"),
    ("libseccomp2", "2.5.4-1+deb12u1"),
    ("nftables", "1.0.6-2+deb12u2"),
    ("runc", "1.1.5+ds1-1+deb12u1"),
];

/// Programs of the packages, to tell a complete directory by.
const FILES: [&str; 6] = [
    "bin/busybox",
    "usr/bin/containerd",
    "usr/bin/containerd-shim-runc-v2",
    "usr/lib/cni/ptp",
    "usr/sbin/nft",
    "usr/sbin/runc",
];

/// Unpacks the packages into `directory`, unless they are there.
pub(super) fn unpacked(directory: &Path, report: &dyn Fn(&str)) -> Result<(), BinariesError> {
    once::filled(directory, &FILES, report, |into| {
        report("downloading containerd, runc and others as Debian packages (40 MB), once");
        let archives = into.join("archives");
        std::fs::create_dir(&archives).map_err(io("create", &archives))?;
        download(&archives)?;
        for archive in files_in(&archives)? {
            let (archive, into) = (archive.display().to_string(), into.display().to_string());
            run("dpkg-deb", &["--extract", &archive, &into], Path::new("/"))?;
        }
        std::fs::remove_dir_all(&archives).map_err(io("remove", &archives))
    })
}

/// Part of the key of the directory: another list is another directory.
pub(super) fn list() -> String {
    PACKAGES.map(|(name, version)| format!("{name}={version}")).join(" ")
}

/// Downloads all packages into `directory`. The lists of a fresh machine are empty or old, so a failure updates them once.
fn download(directory: &Path) -> Result<(), BinariesError> {
    let packages = PACKAGES.map(|(name, version)| format!("{name}={version}"));
    let mut arguments = vec!["-qq", "-o", "APT::Sandbox::User=root", "download"];
    arguments.extend(packages.iter().map(String::as_str));
    if run("apt-get", &arguments, directory).is_ok() {
        return Ok(());
    }
    run("apt-get", &["-qq", "update"], directory)?;
    run("apt-get", &arguments, directory)
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, BinariesError> {
    let entries = std::fs::read_dir(directory).map_err(io("list", directory))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    paths.map_err(io("list", directory))
}

fn run(program: &str, arguments: &[&str], directory: &Path) -> Result<(), BinariesError> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    let failed = |output: String| BinariesError::Packages {
        command: format!("{program} {}", arguments.join(" ")),
        output,
    };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(failed(said())) }
}
