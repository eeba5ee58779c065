//! Removes the remains of crashed labs.
//!
//! A lab is a leftover if the process that owns it has ended. Its children normally end with it; remaining ones are found by
//! pid and start time and killed, then the directory is removed.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::real_nodes::cgroups::{self, CgroupError};
use crate::root::StateRoot;
use crate::state::{LabState, StateError, io};

/// Why leftovers could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum LeftoverError {
    /// A file.
    #[error(transparent)]
    State(#[from] StateError),
    /// A control group of a real node.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
}

/// Something that was removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Removed {
    /// The directory of the lab.
    pub directory: PathBuf,
    /// How many of its processes were still there.
    pub killed: usize,
}

/// Removes every lab whose owner has ended. The caller holds the lock of the root.
pub fn sweep(root: &StateRoot) -> Result<Vec<Removed>, LeftoverError> {
    let mut removed = Vec::new();
    for directory in root.directories()? {
        // A directory without a readable state belongs to a process that crashed while creating it, because creation holds the lock.
        let killed = match LabState::load(&directory) {
            Ok(state) if state.is_alive() => continue,
            Ok(state) => kill_processes(&state),
            Err(_) => 0,
        };
        cgroups::remove(&cgroups::of_lab(&directory))?;
        remove_directory(&directory)?;
        removed.push(Removed { directory, killed });
    }
    Ok(removed)
}

/// Kills all processes of a lab but its supervisor. How many were there.
pub(crate) fn kill_processes(state: &LabState) -> usize {
    let processes = state.clusters.iter().flat_map(|cluster| cluster.processes.values());
    let processes = processes.chain(state.programs.values());
    processes.filter(|process| matches!(process.signal(Signal::KILL), Ok(true))).count()
}

/// Removes a directory; it need not be there.
pub(crate) fn remove_directory(directory: &Path) -> Result<(), StateError> {
    // A process that was just killed may still add a file while the directory is being emptied.
    let mut attempts = 0;
    loop {
        match std::fs::remove_dir_all(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(_) if attempts < 5 => attempts += 1,
            Err(error) => return Err(io("remove", directory)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::binaries::Binaries;
    use crate::component::Component;
    use crate::identity::ProcessId;
    use crate::state::{ClusterState, Phase};

    fn binaries() -> Binaries {
        serde_json::from_str(r#"{"directory":"/bin"}"#).unwrap()
    }

    fn lab(root: &StateRoot, name: &str, supervisor: ProcessId) -> LabState {
        let directory = root.directory_of(name).unwrap();
        std::fs::create_dir_all(&directory).unwrap();
        let cluster = ClusterState::new("manager", &directory, [1, 2, 3, 4, 5, 6]);
        LabState {
            name: name.into(),
            directory,
            supervisor,
            phase: Phase::Starting,
            binaries: binaries(),
            node_programs: None,
            audit: false,
            clusters: vec![cluster],
            programs: std::collections::BTreeMap::new(),
        }
    }

    fn gone() -> ProcessId {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        id
    }

    #[test]
    fn a_lab_without_owner_is_removed_with_its_processes_and_another_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let root = StateRoot::at(directory.path().to_owned());
        let mut orphan = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut crashed = lab(&root, "crashed", gone());
        let orphan_id = ProcessId::of(orphan.id()).unwrap();
        crashed.clusters[0].processes.insert(Component::Etcd, orphan_id);
        crashed.save().unwrap();
        let living = lab(&root, "living", ProcessId::own().unwrap());
        living.save().unwrap();
        std::fs::create_dir(directory.path().join("half-made")).unwrap();

        let removed = sweep(&root).unwrap();

        orphan.wait().unwrap();
        assert_eq!(
            removed,
            vec![
                Removed { directory: crashed.directory, killed: 1 },
                Removed { directory: directory.path().join("half-made"), killed: 0 },
            ]
        );
        assert_eq!(root.directories().unwrap(), vec![living.directory]);
    }
}
