//! kind, and what the nodes of its clusters need: kubeadm and CoreDNS, and the files that kind's module has for nodes.

use std::path::{Path, PathBuf};

use cache::once;

use super::{BinariesError, build, module_program::ModuleProgram};

/// Its version, and part of its directory's name.
const VERSION: &str = "v0.33.0";

/// The files of a node's image, below kind's module.
const BASE_FILES: &str = "images/base/files";

/// kubeadm. With the tags of the lab's programs Go finds most of its packages compiled.
pub const KUBEADM: ModuleProgram = ModuleProgram { name: "kubeadm", tags: "" };

/// CoreDNS. It resolves names itself and needs no C library.
pub const COREDNS: ModuleProgram = ModuleProgram { name: "coredns", tags: "netgo,osusergo" };

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

/// The folder with what kind's module puts on every node.
///
/// # Errors
/// If the module cannot be had.
pub fn base_files(directory: &Path) -> Result<PathBuf, BinariesError> {
    let module = format!("sigs.k8s.io/kind@{VERSION}");
    let answer = build::go(directory, &["mod", "download", "-json", &module])?;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
    let place = answer["Dir"].as_str().map(|place| Path::new(place).join(BASE_FILES));
    place.filter(|place| place.is_dir()).ok_or_else(|| BinariesError::Go {
        arguments: format!("mod download {module}"),
        output: format!("the module has no {BASE_FILES}"),
    })
}
