//! kind, built from its Go module.

use std::path::PathBuf;

use cache::once;

use super::{BinariesError, build};

/// Its version, and part of its directory's name.
const VERSION: &str = "v0.33.0";

/// Finds kind; builds it when needed. `report` gets a line of progress now and then.
///
/// # Errors
/// If there is no Go toolchain, or the build fails.
pub fn find(report: &dyn Fn(&str)) -> Result<PathBuf, BinariesError> {
    let directory = cache::root()?.join(format!("kind-{}", VERSION.replace('.', "-")));
    once::filled(&directory, &once::has_programs(&["kind"]), report, |into| {
        report("building kind from its Go module; half a minute, once");
        build::install(&format!("sigs.k8s.io/kind@{VERSION}"), into)
    })?;
    Ok(directory.join("kind"))
}
