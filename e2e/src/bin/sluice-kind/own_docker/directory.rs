//! The directory of a daemon: its data, its log, and what must be undone on the machine after its processes.
//!
//! The process that owns a directory holds a lock of its file [`OWNER`]: a directory without a locked one is a leftover. Creation holds the
//! lock of the root.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lab::StateRoot;
use lab::real_nodes::cgroups;

use super::kernel_settings::{self, PLACE};
use super::requirements::misplaced;

/// The file with the kernel's settings as they were before.
const OWNER: &str = "owner.json";

/// More daemons than run at once on any machine.
const MOST: usize = 100;

/// The directory of a daemon.
pub(super) struct DaemonDirectory {
    path: PathBuf,
    /// Locked while the value lives.
    _owner: File,
}

/// The root of all directories of this user.
pub(super) fn daemons_of_user() -> Result<StateRoot> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    let state = state.context("no place for the files of a daemon: set XDG_STATE_HOME or HOME")?;
    Ok(StateRoot::at(state.join("sluice-kind")))
}

impl DaemonDirectory {
    /// Creates a directory with a control group, and removes those of processes that have ended.
    pub(super) fn create(root: &StateRoot) -> Result<Self> {
        if let Some(why) = misplaced(root.path()) {
            bail!(why);
        }
        let _lock = root.lock()?;
        sweep(root)?;
        let directory = Self::of(unused(root)?)?;
        cgroups::create(&cgroups::of_lab(&directory.path))?;
        Ok(directory)
    }

    fn of(path: PathBuf) -> Result<Self> {
        fs::create_dir(&path).with_context(|| format!("creating {}", path.display()))?;
        let settings = serde_json::to_vec(&kernel_settings::read(Path::new(PLACE)))?;
        let file = path.join(OWNER);
        let owner = fs::write(&file, settings).and_then(|()| File::open(&file));
        let owner = owner.with_context(|| format!("writing {}", file.display()))?;
        owner.lock().with_context(|| format!("locking {}", file.display()))?;
        Ok(Self { path, _owner: owner })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it. All processes of the daemon have ended.
    pub(super) fn remove(self) -> Result<()> {
        clean(&self.path)
    }
}

/// The first name that no directory has.
fn unused(root: &StateRoot) -> Result<PathBuf> {
    let paths = (1..MOST).map(|number| root.path().join(format!("docker-{number}")));
    paths.into_iter().find(|path| !path.exists()).context("too many daemons")
}

/// Removes what processes left that ended without cleaning. The caller holds the lock of the root.
fn sweep(root: &StateRoot) -> Result<()> {
    for directory in root.directories()? {
        if !is_owned(&directory) {
            println!("removing the files of a daemon that crashed: {}", directory.display());
            clean(&directory)?;
        }
    }
    Ok(())
}

/// Pids do not tell: the owner may be in another process namespace.
fn is_owned(directory: &Path) -> bool {
    let owner = File::open(directory.join(OWNER));
    owner.is_ok_and(|owner| matches!(owner.try_lock(), Err(TryLockError::WouldBlock)))
}

fn clean(directory: &Path) -> Result<()> {
    cgroups::remove(&cgroups::of_lab(directory))?;
    let settings = fs::read(directory.join(OWNER)).unwrap_or_default();
    // A half-made directory has no settings, and no daemon has run in it.
    if let Ok(settings) = serde_json::from_slice(&settings) {
        kernel_settings::restore(Path::new(PLACE), &settings)?;
    }
    fs::remove_dir_all(directory).with_context(|| format!("removing {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_ended_processes_and_half_made_ones_are_removed_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let root = StateRoot::at(folder.path().to_owned());
        let mut made = (0..4).map(|_| DaemonDirectory::of(unused(&root).unwrap()).unwrap());
        let (living, crashed) = (made.next().unwrap(), made.next().unwrap().path);
        let [half_made, broken] = [made.next(), made.next()].map(|one| one.unwrap().path);
        fs::create_dir_all(crashed.join("data/overlay2/x")).unwrap();
        fs::remove_file(half_made.join(OWNER)).unwrap();
        fs::write(broken.join(OWNER), "{\"vm/").unwrap();

        sweep(&root).unwrap();

        assert_eq!(root.directories().unwrap(), std::slice::from_ref(&living.path));
        assert!(unused(&root).unwrap().ends_with("docker-2"));
        living.remove().unwrap();
        assert!(root.directories().unwrap().is_empty());
    }

    #[test]
    fn a_covered_place_is_refused_before_anything_is_written() {
        let root = StateRoot::at("/etc/absent/sluice-kind".into());
        let said = DaemonDirectory::create(&root).err().unwrap().to_string();
        assert!(said.contains("it covers /etc"), "{said}");
        assert!(!Path::new("/etc/absent").exists());
    }
}
