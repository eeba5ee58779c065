//! Fills a directory of the cache once.
//!
//! Two processes on one machine do not collide: a lock file is held while a directory is filled, and the finished directory
//! appears by a rename, so a reader sees all files or none. An interrupted process leaves a `.building` directory that the next
//! one removes.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{CacheError, io};

/// Fills `directory`, unless it is complete. `fill` gets an empty directory.
///
/// # Errors
/// If `fill` fails, or a directory of the cache cannot be written.
pub fn filled<E: From<CacheError>>(
    directory: &Path,
    is_complete: &dyn Fn(&Path) -> bool,
    report: &dyn Fn(&str),
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    if is_complete(directory) {
        return Ok(());
    }
    let parent = directory.parent().unwrap_or(directory);
    std::fs::create_dir_all(parent).map_err(io("create", parent))?;
    let _lock = lock(&directory.with_extension("lock"), report)?;
    if is_complete(directory) {
        return Ok(()); // Another process filled it meanwhile.
    }
    let unfinished = directory.with_extension("building");
    remove(&unfinished)?;
    remove(directory)?;
    std::fs::create_dir_all(&unfinished).map_err(io("create", &unfinished))?;
    fill(&unfinished)?;
    Ok(std::fs::rename(&unfinished, directory).map_err(io("rename", &unfinished))?)
}

/// A directory is complete if it has all of these programs.
pub fn has_programs<'a>(files: &'a [&'a str]) -> impl Fn(&Path) -> bool + 'a {
    |directory| missing(directory, files).is_empty()
}

/// The programs that a directory lacks. What cannot be executed is none: a machine that went down keeps names of files without
/// their content.
#[must_use]
pub fn missing<'a>(directory: &Path, files: &[&'a str]) -> Vec<&'a str> {
    let is_program = |file: &str| {
        let found = std::fs::metadata(directory.join(file));
        found.is_ok_and(|one| one.is_file() && one.len() > 0 && one.mode() & 0o111 != 0)
    };
    files.iter().copied().filter(|file| !is_program(file)).collect()
}

fn lock(path: &Path, report: &dyn Fn(&str)) -> Result<File, CacheError> {
    let file = File::create(path).map_err(io("create", path))?;
    if file.try_lock().is_err() {
        report("another process fills the cache; waiting for it");
        file.lock().map_err(io("lock", path))?;
    }
    Ok(file)
}

fn remove(directory: &Path) -> Result<(), CacheError> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("remove", directory)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Writes a program with this content.
    fn fill(content: &'static str) -> impl FnOnce(&Path) -> Result<(), CacheError> {
        move |into| {
            let program = into.join("program");
            let written = std::fs::write(&program, content)
                .and_then(|()| std::fs::set_permissions(&program, Permissions::from_mode(0o755)));
            written.map_err(io("write", into))
        }
    }

    #[test]
    fn a_complete_directory_is_left_alone_and_an_incomplete_one_is_made_again() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("key");
        filled(&directory, &has_programs(&["program"]), &|_| {}, fill("first")).unwrap();
        filled(&directory, &has_programs(&["program"]), &|_| {}, fill("second")).unwrap();
        assert_eq!(std::fs::read_to_string(directory.join("program")).unwrap(), "first");

        std::fs::create_dir(directory.with_extension("building")).unwrap();
        filled(&directory, &has_programs(&["program", "other"]), &|_| {}, fill("third")).unwrap();
        assert_eq!(std::fs::read_to_string(directory.join("program")).unwrap(), "third");
        assert_eq!(missing(&directory, &["program", "other"]), ["other"]);
    }

    #[test]
    fn programs_that_cannot_be_executed_are_made_again() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("key");
        filled(&directory, &has_programs(&["program"]), &|_| {}, fill("first")).unwrap();
        let program = directory.join("program");
        std::fs::write(&program, "").unwrap();
        filled(&directory, &has_programs(&["program"]), &|_| {}, fill("second")).unwrap();
        assert_eq!(std::fs::read_to_string(&program).unwrap(), "second");
        std::fs::set_permissions(&program, Permissions::from_mode(0o644)).unwrap();
        filled(&directory, &has_programs(&["program"]), &|_| {}, fill("third")).unwrap();
        assert_eq!(std::fs::read_to_string(&program).unwrap(), "third");
    }

    #[test]
    fn a_build_that_fails_leaves_nothing_that_counts_as_complete() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("key");
        let fails = |into: &Path| {
            fill("half")(into)?;
            Err(io("write", into)(std::io::Error::other("no space")))
        };
        assert!(filled(&directory, &has_programs(&["program"]), &|_| {}, fails).is_err());
        assert!(!directory.exists());
        filled(&directory, &has_programs(&["program"]), &|_| {}, fill("whole")).unwrap();
        assert_eq!(std::fs::read_to_string(directory.join("program")).unwrap(), "whole");
        assert!(!directory.with_extension("building").exists());
    }
}
