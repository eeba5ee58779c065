//! The directory that holds all labs: `$SLUICE_LAB_HOME`, else `$XDG_STATE_HOME/sluice-lab`, else
//! `~/.local/state/sluice-lab`. A lab's directory has the lab's name.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::state::{LabState, StateError, file_in, io};

/// The directory that holds all labs.
#[derive(Debug, Clone)]
pub struct StateRoot(PathBuf);

impl StateRoot {
    /// The one of this user.
    pub fn of_user() -> Result<Self, StateError> {
        let set = |name| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        set("SLUICE_LAB_HOME")
            .or_else(|| set("XDG_STATE_HOME").map(|state| state.join("sluice-lab")))
            .or_else(|| set("HOME").map(|home| home.join(".local/state/sluice-lab")))
            .map(Self)
            .ok_or(StateError::NoRoot)
    }

    /// This one.
    pub fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where a lab of this name lives.
    pub fn directory_of(&self, name: &str) -> Result<PathBuf, StateError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(allowed) {
            return Err(StateError::BadName(name.to_owned()));
        }
        Ok(self.0.join(name))
    }

    /// The lab of this name.
    pub fn lab(&self, name: &str) -> Result<LabState, StateError> {
        let directory = self.directory_of(name)?;
        if !file_in(&directory).is_file() {
            return Err(StateError::NoLab(name.to_owned()));
        }
        LabState::load(&directory)
    }

    /// Every lab's directory, in the order of names.
    pub fn directories(&self) -> Result<Vec<PathBuf>, StateError> {
        let mut directories = Vec::new();
        match std::fs::read_dir(&self.0) {
            Ok(entries) => {
                for entry in entries {
                    directories.push(entry.map_err(io("list", &self.0))?.path());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(io("list", &self.0)(error)),
        }
        directories.retain(|directory| directory.is_dir());
        directories.sort();
        Ok(directories)
    }

    /// Held while labs are created or removed, so that two processes do not select the same ports.
    pub fn lock(&self) -> Result<File, StateError> {
        std::fs::create_dir_all(&self.0).map_err(io("create", &self.0))?;
        let path = self.0.join(".lock");
        let file = File::create(&path).map_err(io("create", &path))?;
        file.lock().map_err(io("lock", &path))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_the_root() {
        let root = StateRoot::at("/r".into());
        for name in ["", ".", "..", "a/b", "../x", "a b"] {
            assert!(root.directory_of(name).is_err(), "{name:?}");
        }
        assert_eq!(root.directory_of("ci-7.b_2").unwrap(), PathBuf::from("/r/ci-7.b_2"));
    }

    #[test]
    fn a_missing_lab_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = StateRoot::at(directory.path().join("none"));
        assert!(matches!(root.lab("x"), Err(StateError::NoLab(name)) if name == "x"));
        assert!(root.directories().unwrap().is_empty());
    }
}
