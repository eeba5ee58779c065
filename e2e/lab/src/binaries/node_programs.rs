//! The programs of real nodes: some built with Go, some out of Debian packages.

use std::path::{Path, PathBuf};

use cache::{once, short_digest};
use serde::{Deserialize, Serialize};

use super::{BinariesError, build, key, packages};

/// The programs that are built with Go.
const BUILT: [&str; 3] = ["kubelet", "kube-proxy", "pause"];

/// The directories that hold the programs of real nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePrograms {
    built: PathBuf,
    packages: PathBuf,
}

impl NodePrograms {
    /// Finds the programs; builds and downloads them when needed. `report` gets a line of progress now and then.
    pub fn find(report: &dyn Fn(&str)) -> Result<Self, BinariesError> {
        let module = Path::new(env!("CARGO_MANIFEST_DIR"));
        let cache = cache::root()?;
        let found = Self {
            built: cache.join(format!("{}-node", key::key(module)?)),
            packages: cache.join(format!("packages-{}", short_digest(&packages::list()))),
        };
        packages::unpacked(&found.packages, report)?;
        once::filled(&found.built, &once::has_programs(&BUILT), report, |into| {
            build::build_all(module, into, &BUILT, report)
        })?;
        Ok(found)
    }

    /// The kubelet.
    pub fn kubelet(&self) -> PathBuf {
        self.built.join("kubelet")
    }

    /// kube-proxy.
    pub fn kube_proxy(&self) -> PathBuf {
        self.built.join("kube-proxy")
    }

    /// The program of a pod's sandbox.
    pub fn pause(&self) -> PathBuf {
        self.built.join("pause")
    }

    /// containerd.
    pub fn containerd(&self) -> PathBuf {
        self.packages.join("usr/bin/containerd")
    }

    /// containerd's command line tool.
    pub fn ctr(&self) -> PathBuf {
        self.packages.join("usr/bin/ctr")
    }

    /// runc.
    pub fn runc(&self) -> PathBuf {
        self.packages.join("usr/sbin/runc")
    }

    /// A shell with common tools.
    pub fn busybox(&self) -> PathBuf {
        self.packages.join("bin/busybox")
    }

    /// The directory of the CNI plugins.
    pub fn cni_plugins(&self) -> PathBuf {
        self.packages.join("usr/lib/cni")
    }

    /// The search path of the programs, which call each other by name.
    pub fn path(&self) -> String {
        let own = ["usr/sbin", "usr/bin"].map(|folder| self.packages.join(folder));
        format!("{}:{}:/usr/sbin:/usr/bin:/sbin:/bin", own[0].display(), own[1].display())
    }

    /// Where the libraries of the packages are.
    pub fn libraries(&self) -> String {
        let folder = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        self.packages.join(folder).display().to_string()
    }
}
