//! Keeps the house in order. Each rule is a function that lists what breaks it; the tests demand empty lists.

pub mod dependencies;
pub mod manifests;
pub mod sources;

use std::path::{Path, PathBuf};

/// The root of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

#[cfg(test)]
mod tests;
