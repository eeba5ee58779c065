//! Digests of contents, as image formats write them.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The SHA-256 of a content, in hexadecimal digits.
#[must_use]
pub fn sha256(content: &[u8]) -> String {
    hexadecimal(&Sha256::digest(content))
}

/// The digits of a digest.
pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a String does not fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
