//! Build script of the programs: makes releases smaller where the toolchain brings its own linker.

#![expect(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

use std::env;

/// Equal functions are kept once. A debug build links faster without.
const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=../.cargo/link.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins={FOLD}");
    }
}
