//! The file of further kinds of jobs (`--job-kinds`, docs/kinds.md).

use std::{
    io,
    path::{Path, PathBuf},
};

use jobs::{Kinds, kind::KindError};

/// Why the file is refused.
#[derive(Debug, thiserror::Error)]
pub enum DeclaredKindsError {
    /// It cannot be read.
    #[error("read the kinds of jobs {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It has a definition that is none.
    #[error("kinds of jobs {}: {error}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Box<KindError>,
    },
}

/// Reads the kinds of jobs that a file declares; none without a file.
///
/// # Errors
/// If the file cannot be read, or a definition is invalid.
pub fn declared_kinds(path: Option<&Path>) -> Result<Kinds, DeclaredKindsError> {
    let Some(path) = path else { return Ok(Kinds::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| DeclaredKindsError::Unreadable { path: path.to_owned(), error })?;
    Kinds::declared(&text)
        .map_err(|error| DeclaredKindsError::Invalid { path: path.to_owned(), error: error.into() })
}
