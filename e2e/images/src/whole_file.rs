//! Files that are there as a whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Replaces a file, also one that cannot be written to. The content is written beside it, to disk, and takes its name then: an
/// interrupted call leaves the former file, and what is beside it is replaced by the next call.
///
/// # Errors
/// If the folder or the file cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = beside(path);
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    if unfinished.exists() {
        fs::remove_file(&unfinished)?;
    }
    let mut file = File::create(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}

/// Where the content of a file is written first.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn content(path: &Path) -> String {
        fs::read_to_string(path).expect("it is there")
    }

    #[test]
    fn what_an_interrupted_call_left_neither_counts_nor_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("images/sluice-agent.tar");
        replace(&path, b"first").expect("it is written");
        fs::write(beside(&path), "hal").expect("it is written");
        assert_eq!(content(&path), "first");
        replace(&path, b"second").expect("it is written");
        assert_eq!(content(&path), "second");
        assert!(!beside(&path).exists());
    }

    #[test]
    fn a_call_that_fails_leaves_the_former_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sluice-agent.tar");
        replace(&path, b"first").expect("it is written");
        fs::create_dir(beside(&path)).expect("a folder in the way");
        assert!(replace(&path, b"second").is_err());
        assert_eq!(content(&path), "first");
    }

    #[test]
    fn a_read_only_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        replace(&path, b"first").expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o555)).expect("permissions");
        replace(&path, b"second").expect("it is replaced");
        assert_eq!(content(&path), "second");
    }
}
