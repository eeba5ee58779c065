//! The cache of a machine: programs, packages and images that are built or downloaded once, for all checkouts.
//!
//! A directory of the cache bears a key of its inputs in its name, so that another input is another directory.
//!
//! | module | concept |
//! |---|---|
//! | [`once`] | a directory that is filled once, by one of several processes |
//! | [`debian`] | Debian packages that are unpacked and not installed |
//! | [`command`] | programs that are run for their effect |

pub mod command;
pub mod debian;
pub mod once;

use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

/// A directory of the cache could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// There is neither a cache directory nor a home directory.
    #[error("no place for the cache: set XDG_CACHE_HOME or HOME")]
    NoPlace,
    /// A file could not be read or written.
    #[error("{operation} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// apt does not have a pinned version of a package.
    #[error(
        "Debian package {package} cannot be downloaded; `apt-cache policy {}` names the version that there is, and the file with the text \
         \"{package}\" pins it: {failed}",
        .package.split('=').next().unwrap_or(.package)
    )]
    Package {
        /// Its name and version, as they are pinned.
        package: String,
        /// The program that failed, and what it printed.
        failed: String,
    },
    /// A program failed.
    #[error("{command} failed: {output}")]
    Command {
        /// The program and its arguments.
        command: String,
        /// What it printed.
        output: String,
    },
}

/// The directory of the cache, outside of any checkout.
///
/// # Errors
/// If the environment names neither a cache directory nor a home directory.
pub fn root() -> Result<PathBuf, CacheError> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = match named("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(named("HOME").ok_or(CacheError::NoPlace)?).join(".cache"),
    };
    Ok(base.join("sluice-lab"))
}

/// A short digest of the inputs of a directory, for its name.
#[must_use]
pub fn short_digest(inputs: &str) -> String {
    let digest = digest(&SHA256, inputs.as_bytes());
    digest.as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// A digest of the sources that make the content of directories. Comments and tests do not change it.
#[must_use]
pub fn recipe_digest(sources: &[&str]) -> String {
    let code = sources.iter().flat_map(|source| code_of(source));
    short_digest(&code.collect::<Vec<_>>().join("\n"))
}

fn code_of(source: &str) -> impl Iterator<Item = &str> {
    let lines = source.lines().take_while(|line| *line != "#[cfg(test)]").map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//"))
}

/// Names the operation and the file of a failure.
pub fn io(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> CacheError {
    let path = path.to_owned();
    move |source| CacheError::Io { operation, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_changes_the_digest_of_sources_and_comments_and_tests_do_not() {
        let digest = |source: &str| recipe_digest(&["fn first() {}", source]);
        let code = digest("/// One.\nfn one() {\n    two()\n}\n");
        assert_eq!(
            code,
            digest("//! Of one.\nfn one() {\n  // Two.\n    two()\n}\n#[cfg(test)]\nmod tests {}")
        );
        assert_ne!(code, digest("fn one() {\n    three()\n}\n"));
    }
}
