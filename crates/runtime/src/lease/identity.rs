//! The identity of a candidate: unique per process, and readable.

use std::path::Path;

/// The host name or a random number could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {source}")]
pub struct IdentityError {
    path: &'static str,
    source: std::io::Error,
}

/// The host name and a random part, in the form `host_uuid`.
///
/// Two processes with the same identity would both consider themselves the holder, so a restarted process has a new one.
///
/// # Errors
/// If the files of the kernel cannot be read.
pub fn identity() -> Result<String, IdentityError> {
    let host = read("/proc/sys/kernel/hostname")?;
    Ok(format!("{host}_{}", read("/proc/sys/kernel/random/uuid")?))
}

fn read(path: &'static str) -> Result<String, IdentityError> {
    let text = std::fs::read_to_string(Path::new(path));
    text.map(|text| text.trim().to_owned()).map_err(|source| IdentityError { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_unique() {
        let [one, other] = [identity(), identity()].map(|identity| identity.expect("an identity"));
        assert_ne!(one, other);
        let (host, unique) = one.rsplit_once('_').expect("two parts");
        assert!(!host.is_empty() && unique.len() == 36, "{one}");
    }
}
