//! Kubeconfigs in files of the manager's pod (`locationType: Path`, docs/reference/multikueue.md §1.2, §2.9).
//!
//! Any user with the right to create MultiKueueClusters chooses the path, so only files of one directory are read, whatever
//! links lead to. A file is reduced to the hash of its text; the task of the worker reads the text when it connects.

use std::{
    io::Read,
    path::{Component, Path, PathBuf},
};

use crate::{kubeconfig_refused::KubeconfigRefused, kubeconfig_secret::Fingerprint};

/// The directory that upstream reads kubeconfigs from.
pub const KUBECONFIG_DIRECTORY: &str = "/etc/multikueue/kubeconfigs";

/// The greatest size of a file, that of a Secret.
const SIZE_LIMIT: u64 = 1 << 20;

/// The directory of kubeconfigs.
#[derive(Clone, Debug)]
pub struct KubeconfigDirectory(PathBuf);

impl Default for KubeconfigDirectory {
    fn default() -> Self {
        Self(KUBECONFIG_DIRECTORY.into())
    }
}

impl KubeconfigDirectory {
    /// Kubeconfigs in this directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The hash of a file's text.
    pub(super) async fn fingerprint(
        self,
        path: Box<str>,
    ) -> Result<Fingerprint, KubeconfigRefused> {
        self.read(path).await.map(|text| Fingerprint::of(&text))
    }

    /// The text of a file.
    ///
    /// # Errors
    /// If the file is not one of the directory, or cannot be read.
    pub(super) async fn read(self, path: Box<str>) -> Result<Vec<u8>, KubeconfigRefused> {
        let name = path.clone();
        let read = tokio::task::spawn_blocking(move || self.read_now(&path));
        // The task ends without an answer only together with the runtime.
        read.await.unwrap_or(Err(KubeconfigRefused::UnreadableFile(name)))
    }

    fn read_now(&self, path: &str) -> Result<Vec<u8>, KubeconfigRefused> {
        if Path::new(path).is_relative() {
            return Err(KubeconfigRefused::RelativePath);
        }
        if !self.names(Path::new(path)) {
            return Err(KubeconfigRefused::OutsideDirectory);
        }
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => KubeconfigRefused::NoFile(path.into()),
            _ => KubeconfigRefused::UnreadableFile(path.into()),
        };
        let target = Path::new(path).canonicalize().map_err(failed)?;
        let directory = self.0.canonicalize().map_err(failed)?;
        // A mounted Secret has links within its directory; one that leads elsewhere could show any file of the manager.
        if !target.starts_with(&directory) {
            return Err(KubeconfigRefused::OutsideDirectory);
        }
        let file = std::fs::File::open(&target).map_err(failed)?;
        // A pipe or a device would never end.
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(KubeconfigRefused::UnreadableFile(path.into()));
        }
        let mut text = Vec::new();
        let read = file.take(SIZE_LIMIT + 1).read_to_end(&mut text).map_err(failed)?;
        match u64::try_from(read).is_ok_and(|read| read <= SIZE_LIMIT) {
            true => Ok(text),
            false => Err(KubeconfigRefused::UnreadableFile(path.into())),
        }
    }

    /// Whether a path names a file of the directory, before links are followed.
    fn names(&self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == Component::ParentDir);
        !climbs && path != self.0 && path.starts_with(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn directory() -> (tempfile::TempDir, KubeconfigDirectory) {
        let root = tempfile::tempdir().expect("a directory");
        let own = root.path().join("kubeconfigs");
        std::fs::create_dir(&own).expect("a directory");
        std::fs::write(root.path().join("outside"), "hush").expect("a file");
        (root, KubeconfigDirectory::new(own))
    }

    #[test]
    fn only_files_of_the_directory_are_read() {
        let (root, directory) = directory();
        let own = root.path().join("kubeconfigs");
        std::fs::write(own.join("east"), "text").expect("a file");
        // As a Secret is mounted.
        std::fs::create_dir(own.join("..2026")).expect("a directory");
        std::fs::write(own.join("..2026/west"), "text").expect("a file");
        symlink("..2026", own.join("..data")).expect("a link");
        symlink("..data/west", own.join("west")).expect("a link");
        symlink("../outside", own.join("out")).expect("a link");
        symlink(root.path(), own.join("up")).expect("a link");
        let path = |name: &str| own.join(name).display().to_string();
        for name in ["east", "west"] {
            assert_eq!(directory.read_now(&path(name)).as_deref(), Ok(&b"text"[..]), "{name}");
        }
        let outside = root.path().join("outside").display().to_string();
        let sibling = format!("{}-more/east", own.display());
        for path in [
            own.display().to_string(),
            path("../outside"),
            path("../kubeconfigs/east"),
            path("out"),
            path("up/outside"),
            outside,
            sibling,
        ] {
            assert_eq!(
                directory.read_now(&path),
                Err(KubeconfigRefused::OutsideDirectory),
                "{path}"
            );
        }
        for path in ["", "kubeconfigs/east"] {
            assert_eq!(directory.read_now(path), Err(KubeconfigRefused::RelativePath), "{path:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let (root, directory) = directory();
        let own = root.path().join("kubeconfigs");
        let path = |name: &str| own.join(name).display().to_string();
        let absent = path("absent");
        assert_eq!(
            directory.read_now(&absent),
            Err(KubeconfigRefused::NoFile(absent.as_str().into()))
        );
        std::fs::create_dir(own.join("folder")).expect("a directory");
        std::fs::write(own.join("large"), vec![b' '; (1 << 20) + 1]).expect("a file");
        for name in ["folder", "large"] {
            let path = path(name);
            let expected = KubeconfigRefused::UnreadableFile(path.as_str().into());
            assert_eq!(directory.read_now(&path), Err(expected), "{name}");
        }
    }
}
