//! kind and kubeadm, built from their Go modules, and the files that kind's module has for nodes.

use std::path::{Path, PathBuf};

use cache::{once, short_digest};

use super::{BinariesError, build};

/// Its version, and part of its directory's name.
const VERSION: &str = "v0.33.0";

/// The files of a node's image, below kind's module.
const BASE_FILES: &str = "images/base/files";

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

/// Finds kubeadm; builds it from its module when needed.
///
/// # Errors
/// As [`find`].
pub fn kubeadm(module: &Path, report: &dyn Fn(&str)) -> Result<PathBuf, BinariesError> {
    let mut inputs = build::LINKER_FLAGS.join(" ");
    for file in ["go.mod", "go.sum", "main.go"] {
        let path = module.join(file);
        inputs += &std::fs::read_to_string(&path).map_err(cache::io("read", &path))?;
    }
    let directory = cache::root()?.join(format!("kubeadm-{}", short_digest(&inputs)));
    once::filled(&directory, &once::has_programs(&["kubeadm"]), report, |into| {
        report("building kubeadm from its Go module; a minute or two, once");
        let (flags, output) = (build::LINKER_FLAGS.join(" "), into.join("kubeadm"));
        let output = output.display().to_string();
        build::go(module, &["build", "-trimpath", "-ldflags", &flags, "-o", &output, "."]).map(drop)
    })?;
    Ok(directory.join("kubeadm"))
}
