//! Locates the programs of a cluster.
//!
//! The directory in `KUBEBUILDER_ASSETS` is used if it has all of them; otherwise a cache outside `target/`, so that another
//! checkout on the machine does not build again. The key of the cache covers all inputs of the build ([`key`]); missing programs
//! are built ([`build`]). The programs of real nodes have a directory of their own ([`node_programs`]), so that labs without real
//! nodes do not build them. So has each program with a Go module of its own ([`module_program`]).

mod build;
mod key;
pub mod kind_program;
pub mod module_program;
pub mod node_programs;
mod packages;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cache::{CacheError, once};
use serde::{Deserialize, Serialize};

use crate::component::Component;

/// All programs that a lab needs.
pub const PROGRAMS: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"];

/// Kubernetes' version, as the programs report it.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// Why the programs could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BinariesError {
    /// The override names a directory that lacks some of them.
    #[error("KUBEBUILDER_ASSETS={} lacks {}", .directory.display(), .missing.join(", "))]
    Incomplete {
        /// The directory.
        directory: PathBuf,
        /// The programs that are not there.
        missing: Vec<&'static str>,
    },
    /// A file of the Go module or a directory of the cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The Go toolchain is missing.
    #[error("start the Go toolchain (go {arguments}): {source}")]
    NoGo {
        /// Its arguments.
        arguments: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The Go toolchain failed.
    #[error("go {arguments} failed:\n{output}")]
    Go {
        /// Its arguments.
        arguments: String,
        /// What it printed.
        output: String,
    },
}

/// A directory that holds all of [`PROGRAMS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// Finds the programs, building them when needed. `report` gets a line of progress now and then.
    pub fn find(report: &dyn Fn(&str)) -> Result<Self, BinariesError> {
        if let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|dir| !dir.is_empty()) {
            return Self::from_assets(&assets);
        }
        let module = Path::new(env!("CARGO_MANIFEST_DIR"));
        let key = key::key(module)?;
        let directory = cache::root()?.join(&key);
        once::filled(&directory, &once::has_programs(&PROGRAMS), report, |into| {
            build::build_all(module, into, &PROGRAMS, report)
        })?;
        Ok(Self { directory })
    }

    fn from_assets(assets: &OsStr) -> Result<Self, BinariesError> {
        let directory = PathBuf::from(assets);
        let missing = once::missing(&directory, &PROGRAMS);
        if missing.is_empty() {
            Ok(Self { directory })
        } else {
            Err(BinariesError::Incomplete { directory, missing })
        }
    }

    /// The program of a component.
    pub fn of(&self, component: Component) -> PathBuf {
        self.directory.join(component.program())
    }

    /// kubectl, with kustomize inside.
    pub fn kubectl(&self) -> PathBuf {
        self.directory.join("kubectl")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_incomplete_override_is_reported_with_the_missing_programs() {
        let directory = tempfile::tempdir().unwrap();
        let write = |program: &str| {
            let path = directory.path().join(program);
            std::fs::write(&path, "#!/bin/sh").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        };
        ["etcd", "kube-apiserver", "kubectl", "kwok"].into_iter().for_each(write);
        let refused = Binaries::from_assets(directory.path().as_os_str()).unwrap_err();
        assert!(
            refused.to_string().ends_with("lacks kube-controller-manager, kube-scheduler"),
            "{refused}"
        );
        ["kube-controller-manager", "kube-scheduler"].into_iter().for_each(write);
        let found = Binaries::from_assets(directory.path().as_os_str()).unwrap();
        assert_eq!(found.of(Component::Etcd), directory.path().join("etcd"));
    }
}
