//! The Debian packages of a real node.

use std::path::Path;

use cache::{CacheError, debian, once};

/// Name and version of each package.
const PACKAGES: [&str; 8] = [
    "busybox-static=1:1.35.0-4+deb12u1+b1",
    "containerd=1.6.20~ds1-1+deb12u3",
    "containernetworking-plugins=1.1.1+ds1-3+b5",
    "libnftables1=1.0.6-2+deb12u2",
    "libnftnl11=1.2.4-2",
    "libseccomp2=2.5.4-1+deb12u1",
    "nftables=1.0.6-2+deb12u2",
    "runc=1.1.5+ds1-1+deb12u1",
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
pub(super) fn unpacked(directory: &Path, report: &dyn Fn(&str)) -> Result<(), CacheError> {
    once::filled(directory, &once::has_programs(&FILES), report, |into| {
        report("downloading containerd, runc and others as Debian packages (40 MB), once");
        debian::unpack(&PACKAGES, into)
    })
}

/// Part of the key of the directory: another list is another directory.
pub(super) fn list() -> String {
    PACKAGES.join(" ")
}
