//! What the bytes of a program say: whether it is static, and which C library it holds.

use anyhow::{Context, ensure};

/// Begins the self-description of glibc. Its lookup of names brings it into a program.
const BANNER: &[u8] = b"GNU C Library (";

/// Ends the part of the self-description that is read.
const RELEASE: &str = ") stable release version ";

/// The first glibc whose lookup of names, by `/etc/hosts` and DNS, needs no shared libraries.
const FIRST_WITH_LOOKUP: (u32, u32) = (2, 34);

/// The type of a program header that names an interpreter, the dynamic linker.
const INTERPRETER: u32 = 3;

/// The C library inside of a static program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CLibrary {
    /// The distribution and its version, as `Debian GLIBC 2.36-9`.
    pub origin: String,
    /// The version of glibc.
    pub version: String,
}

/// The C library of a static program.
///
/// # Errors
/// If the program is not static, names no glibc, or one that looks up no names without shared libraries.
pub fn c_library(program: &[u8]) -> anyhow::Result<CLibrary> {
    ensure!(!has_interpreter(program)?, "the program needs a dynamic linker");
    let library = banner(program).context("the program names no glibc inside of it")?;
    let version = numbers(&library.version);
    ensure!(
        version.is_some_and(|version| version >= FIRST_WITH_LOOKUP),
        "{} looks up no names in a static program; 2.34 is the first that does",
        library.origin
    );
    Ok(library)
}

/// Reads the program headers of an ELF file (64 bits, little endian).
fn has_interpreter(program: &[u8]) -> anyhow::Result<bool> {
    ensure!(program.starts_with(b"\x7fELF\x02\x01"), "the program is no 64-bit ELF file");
    let headers = || {
        let first = usize::try_from(u64::from_le_bytes(field(program, 0x20)?)).ok()?;
        let size = usize::from(u16::from_le_bytes(field(program, 0x36)?));
        let count = usize::from(u16::from_le_bytes(field(program, 0x38)?));
        let kind = |n: usize| field(program, first.checked_add(size * n)?);
        (0..count).map(|n| kind(n).map(u32::from_le_bytes)).collect::<Option<Vec<u32>>>()
    };
    let headers = headers().context("the program headers are cut off")?;
    Ok(headers.contains(&INTERPRETER))
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The library as it describes itself.
fn banner(program: &[u8]) -> Option<CLibrary> {
    let at = program.windows(BANNER.len()).position(|window| window == BANNER)?;
    let text = program.get(at + BANNER.len()..)?;
    let line = text.split(|byte| *byte == b'\n' || *byte == 0).next()?;
    let (origin, version) = str::from_utf8(line).ok()?.split_once(RELEASE)?;
    let version = version.trim_end_matches('.');
    Some(CLibrary { origin: origin.to_owned(), version: version.to_owned() })
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLIBC: &[u8] = b"GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopy";

    /// An ELF file with program headers of these types, and these bytes after them.
    fn elf(headers: &[u32], rest: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        bytes[0x20] = 64;
        bytes[0x36] = 56;
        bytes[0x38] = u8::try_from(headers.len()).expect("few headers");
        for kind in headers {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn a_static_program_names_its_c_library() {
        let library = c_library(&elf(&[1, 2], GLIBC)).expect("a static program");
        let expected = ("Debian GLIBC 2.36-9".to_owned(), "2.36".to_owned());
        assert_eq!((library.origin, library.version), expected);
    }

    #[test]
    fn other_programs_are_refused() {
        let old = b"GNU C Library (GNU libc) stable release version 2.33.\n";
        let mut cut = elf(&[1, 1], b"");
        cut.truncate(100);
        for (program, words) in [
            (elf(&[1, INTERPRETER], GLIBC), "the program needs a dynamic linker"),
            (elf(&[1], b"GNU C"), "the program names no glibc inside of it"),
            (elf(&[1], old), "GNU libc looks up no names in a static program; 2.34 is the first"),
            (b"#!/bin/sh".to_vec(), "the program is no 64-bit ELF file"),
            (cut, "the program headers are cut off"),
        ] {
            let error = c_library(&program).expect_err(words).to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }
}
