//! Kubeconfigs in files of the manager's pod (`locationType: Path`, docs/reference/multikueue.md §1.2, §2.9).
//!
//! Any user with the right to create MultiKueueClusters chooses the path, so only files of one directory are read, whatever
//! links lead to. A file is reduced to the hash of its text; the task of the worker reads the text when it connects.

use std::{
    fs::File,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use crate::{
    file_read_limits::FileReadLimits, kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::Fingerprint,
};

/// The directory that upstream reads kubeconfigs from.
pub const KUBECONFIG_DIRECTORY: &str = "/etc/multikueue/kubeconfigs";

/// The greatest size of a file, that of a Secret.
const SIZE_LIMIT: u64 = 1 << 20;

/// The directory of kubeconfigs. Clones share the limits of [`FileReadLimits`], so a process has one and its clones.
#[derive(Clone, Debug)]
pub struct KubeconfigDirectory {
    directory: PathBuf,
    limits: FileReadLimits,
}

impl Default for KubeconfigDirectory {
    fn default() -> Self {
        Self::new(KUBECONFIG_DIRECTORY.into())
    }
}

impl KubeconfigDirectory {
    /// Kubeconfigs in this directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, limits: FileReadLimits::default() }
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
        // A refusal by the name needs no thread.
        self.check_name(&path)?;
        let (limits, late) = (self.limits.clone(), KubeconfigRefused::LateFile(path.clone()));
        let name = path.clone();
        limits.read(&name, move || self.read_now(&path)).await.unwrap_or(Err(late))
    }

    fn check_name(&self, path: &str) -> Result<(), KubeconfigRefused> {
        match Path::new(path) {
            path if path.is_relative() => Err(KubeconfigRefused::RelativePath),
            path if !self.names(path) => Err(KubeconfigRefused::OutsideDirectory),
            _ => Ok(()),
        }
    }

    /// Reads a file with a name of the directory.
    fn read_now(&self, path: &str) -> Result<Vec<u8>, KubeconfigRefused> {
        let failed = |error| unreadable(path, &error);
        let target = Path::new(path).canonicalize().map_err(failed)?;
        let directory = self.directory.canonicalize().map_err(failed)?;
        // A mounted Secret has links within its directory; one that leads elsewhere could show any file of the manager.
        if !target.starts_with(&directory) {
            return Err(KubeconfigRefused::OutsideDirectory);
        }
        let file = open(&target).map_err(failed)?;
        // A pipe or a device would never end.
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(KubeconfigRefused::NotRegularFile(path.into()));
        }
        let mut text = Vec::new();
        let read = file.take(SIZE_LIMIT + 1).read_to_end(&mut text).map_err(failed)?;
        if u64::try_from(read).is_ok_and(|read| read <= SIZE_LIMIT) {
            Ok(text)
        } else {
            Err(KubeconfigRefused::LargeFile { path: path.into(), limit: SIZE_LIMIT })
        }
    }

    /// Whether a path names a file of the directory, before links are followed.
    fn names(&self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == Component::ParentDir);
        !climbs && path != self.directory && path.starts_with(&self.directory)
    }
}

/// Opens a file, and does not wait for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

fn unreadable(path: &str, error: &io::Error) -> KubeconfigRefused {
    match error.kind() {
        io::ErrorKind::NotFound => KubeconfigRefused::NoFile(path.into()),
        kind => {
            // Many errors of a file system have no kind.
            let of_system = error.raw_os_error().map(|_| error.to_string());
            let cause = of_system.unwrap_or_else(|| kind.to_string()).into();
            KubeconfigRefused::UnreadableFile { path: path.into(), cause }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, time::Duration};

    use super::*;
    use crate::tests::make_pipe;

    fn directory() -> (tempfile::TempDir, KubeconfigDirectory) {
        let root = tempfile::tempdir().expect("a directory");
        let own = root.path().join("kubeconfigs");
        std::fs::create_dir(&own).expect("a directory");
        std::fs::write(root.path().join("outside"), "hush").expect("a file");
        (root, KubeconfigDirectory::new(own))
    }

    fn checked(directory: &KubeconfigDirectory, path: &str) -> Result<Vec<u8>, KubeconfigRefused> {
        directory.check_name(path).and_then(|()| directory.read_now(path))
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
            assert_eq!(checked(&directory, &path(name)).as_deref(), Ok(&b"text"[..]), "{name}");
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
                checked(&directory, &path),
                Err(KubeconfigRefused::OutsideDirectory),
                "{path}"
            );
        }
        for path in ["", "kubeconfigs/east"] {
            assert_eq!(checked(&directory, path), Err(KubeconfigRefused::RelativePath), "{path:?}");
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
        symlink("loop", own.join("loop")).expect("a link");
        let said = |name: &str| {
            let refused = directory.read_now(&path(name)).expect_err(name);
            refused.to_string().replace(&path(name), name)
        };
        assert_eq!(said("folder"), "\"folder\" is not a regular file");
        assert_eq!(said("large"), "file \"large\" exceeds the size limit of 1048576 bytes");
        let cause = said("loop");
        assert!(cause.starts_with("read loop: ") && cause.len() > "read loop: ".len(), "{cause}");
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let (root, directory) = directory();
        let pipe = root.path().join("kubeconfigs/pipe");
        make_pipe(&pipe);
        let path = pipe.display().to_string();
        let expected = Err(KubeconfigRefused::NotRegularFile(path.as_str().into()));
        let (answers, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || answers.send(directory.read_now(&path)));
        assert_eq!(answer.recv_timeout(Duration::from_secs(5)), Ok(expected));
    }

    #[tokio::test]
    async fn a_refusal_by_the_name_takes_no_thread() {
        let (_root, directory) = directory();
        for path in ["", "kubeconfigs/east", "/etc/passwd"] {
            let read = directory.clone().read(path.into());
            // Polled once: nothing is awaited.
            let answer = futures::FutureExt::now_or_never(read);
            assert!(matches!(answer, Some(Err(_))), "{path:?}: {answer:?}");
        }
    }

    #[test]
    fn the_operating_system_says_why_a_file_is_unreadable() {
        let refused = unreadable("/east", &io::Error::from_raw_os_error(5));
        assert_eq!(refused.to_string(), "read /east: Input/output error (os error 5)");
    }
}
