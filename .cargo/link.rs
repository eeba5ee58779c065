//! Build script of the programs: makes releases smaller where the toolchain brings its own linker.

#![expect(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

use std::{env, process::Command};

/// Equal functions are kept once. A debug build links faster without.
const FOLD: &str = "-Wl,--icf=all";

/// Relative relocations as bitmaps: 32 bytes of the table become one bit.
const PACK: &str = "-Wl,-z,pack-relative-relocs";

/// The first C library that reads them, and that refuses no program with them.
const READS_PACKED: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=../.cargo/link.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins={FOLD}");
        if c_library().is_some_and(|version| version >= READS_PACKED) {
            println!("cargo::rustc-link-arg-bins={PACK}");
        }
    }
}

/// The version of the C library of this machine. A program that is linked to it starts with no older one.
fn c_library() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
