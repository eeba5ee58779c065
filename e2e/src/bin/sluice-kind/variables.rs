//! Variables of the environment that name programs and images, and what is used without them.

use std::path::PathBuf;

use anyhow::Result;
use lab::binaries;

/// Names another kind than that of its module.
pub(crate) const KIND_VARIABLE: &str = "SLUICE_KIND";

/// Names an archive of the image of nodes, where the image would be made otherwise.
pub(crate) const NODE_IMAGE_VARIABLE: &str = "SLUICE_KIND_NODE_IMAGE";

/// kind itself: the one of the environment, or that of its module.
pub(crate) fn kind_program() -> Result<PathBuf> {
    match named_by(KIND_VARIABLE) {
        Some(path) => Ok(path),
        None => Ok(binaries::kind_program::find(&|line| println!("{line}"))?),
    }
}

/// The path in a variable.
pub(crate) fn named_by(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}
