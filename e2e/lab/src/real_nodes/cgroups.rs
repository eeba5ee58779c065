//! The control groups of a lab's nodes: `/sluice-lab/LAB/…` in every hierarchy that the machine has mounted.
//!
//! With cgroup v1 every controller is a hierarchy of its own, and the kubelet demands its root in all of them, also in a v2 hierarchy
//! without controllers beside them. The kernel removes no group: groups outlive their processes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};

/// The group above those of all labs.
const ABOVE: &str = "sluice-lab";

/// A killed process leaves its group a moment later.
const EMPTY_WITHIN: Duration = Duration::from_secs(10);

/// Pause between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A group could not be created or removed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} control group {}: {source}", .path.display())]
pub struct CgroupError {
    operation: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupHierarchy {
    mount: PathBuf,
    unified: bool,
    /// Its controllers.
    controllers: Vec<String>,
}

impl CgroupHierarchy {
    /// The hierarchies of this machine.
    ///
    /// # Errors
    /// If the mounts cannot be read.
    pub fn mounted() -> std::io::Result<Vec<Self>> {
        let offered = |mount: &Path| {
            std::fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default()
        };
        Ok(hierarchies(&std::fs::read_to_string("/proc/self/mounts")?, offered))
    }

    /// Whether it limits a resource.
    pub fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|one| one == controller)
    }

    /// Creates a group and those above it. `made` gets those that were not there.
    fn create(&self, group: &str, made: &mut Vec<PathBuf>) -> std::io::Result<()> {
        let mut path = self.mount.clone();
        for part in group.split('/') {
            if self.unified {
                delegate(&path)?;
            }
            let above = path.clone();
            path.push(part);
            match std::fs::create_dir(&path) {
                Ok(()) => made.push(path.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if self.has("cpuset") && !self.unified {
                inherit_cpuset(&above, &path)?;
            }
        }
        Ok(())
    }
}

/// The hierarchies that a text like `/proc/self/mounts` lists. `offered` is the content of the file `cgroup.controllers` of a
/// mount of version 2.
pub(super) fn hierarchies(mounts: &str, offered: impl Fn(&Path) -> String) -> Vec<CgroupHierarchy> {
    mounts.lines().filter_map(|line| hierarchy(line, &offered)).collect()
}

fn hierarchy(line: &str, offered: impl Fn(&Path) -> String) -> Option<CgroupHierarchy> {
    let mut fields = line.split(' ').skip(1);
    let (mount, kind, options) = (Path::new(fields.next()?), fields.next()?, fields.next()?);
    let unified = match kind {
        "cgroup2" => true,
        "cgroup" => false,
        _ => return None,
    };
    let names = |text: &str, separator: fn(char) -> bool| -> Vec<String> {
        text.split(separator).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let controllers = if unified {
        names(&offered(mount), char::is_whitespace)
    } else {
        names(options, |one| one == ',')
    };
    Some(CgroupHierarchy { mount: mount.to_owned(), unified, controllers })
}

/// With version 2 a group has the controllers that the group above it passes on.
fn delegate(above: &Path) -> std::io::Result<()> {
    let available = std::fs::read_to_string(above.join("cgroup.controllers"))?;
    let all: Vec<String> = available.split_whitespace().map(|name| format!("+{name}")).collect();
    if all.is_empty() {
        Ok(())
    } else {
        let passed_on = std::fs::write(above.join("cgroup.subtree_control"), all.join(" "));
        passed_on.map_err(|error| refused_delegation(above, error))
    }
}

/// A group with processes passes no controllers on, except the first one of the machine.
fn refused_delegation(above: &Path, error: std::io::Error) -> std::io::Error {
    if error.kind() != std::io::ErrorKind::ResourceBusy {
        return error;
    }
    std::io::Error::other(format!(
        "{} has processes and so passes no controllers on to groups below it; move them to a group of their own",
        above.display()
    ))
}

/// A new group of version 1 has no processors, so that no process could enter it.
fn inherit_cpuset(above: &Path, group: &Path) -> std::io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if std::fs::read_to_string(group.join(file))?.trim().is_empty() {
            std::fs::write(group.join(file), std::fs::read(above.join(file))?)?;
        }
    }
    Ok(())
}

/// The group of the lab in `directory`. Labs of one name may exist in several roots.
pub fn of_lab(directory: &Path) -> String {
    let digest = digest(&SHA256, directory.as_os_str().as_encoded_bytes());
    let digits: String = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    format!("{ABOVE}/{name}-{digits}")
}

/// Creates a group in every hierarchy, or in none.
///
/// # Errors
/// If a hierarchy refuses it.
pub fn create(group: &str) -> Result<(), CgroupError> {
    create_in(&mounted()?, group)
}

fn create_in(hierarchies: &[CgroupHierarchy], group: &str) -> Result<(), CgroupError> {
    let mut made = Vec::new();
    for hierarchy in hierarchies {
        if let Err(source) = hierarchy.create(group, &mut made) {
            // The error says why there is no group; a group that is in use meanwhile stays.
            made.iter().rev().for_each(|path| drop(std::fs::remove_dir(path)));
            let path = hierarchy.mount.join(group);
            return Err(CgroupError { operation: "create", path, source });
        }
    }
    Ok(())
}

/// Whether a hierarchy has a group.
///
/// # Errors
/// If the mounts cannot be read.
pub fn exists(group: &str) -> Result<bool, CgroupError> {
    Ok(mounted()?.iter().any(|hierarchy| hierarchy.mount.join(group).exists()))
}

/// Removes a group and those below it from every hierarchy. Its processes have ended or are ending.
///
/// # Errors
/// If a group still has processes after ten seconds.
pub fn remove(group: &str) -> Result<(), CgroupError> {
    let until = Instant::now() + EMPTY_WITHIN;
    for hierarchy in mounted()? {
        let path = hierarchy.mount.join(group);
        while let Err(source) = remove_tree(&path) {
            if Instant::now() > until {
                return Err(CgroupError { operation: "remove", path, source });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        // The group above all labs goes with the last of them; it is not empty before.
        let _ = std::fs::remove_dir(hierarchy.mount.join(ABOVE));
    }
    Ok(())
}

fn mounted() -> Result<Vec<CgroupHierarchy>, CgroupError> {
    CgroupHierarchy::mounted().map_err(|source| CgroupError {
        operation: "find",
        path: PathBuf::from("/proc/self/mounts"),
        source,
    })
}

/// Groups have files that cannot be removed: only directories are.
fn remove_tree(group: &Path) -> std::io::Result<()> {
    let absent = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let entries = match std::fs::read_dir(group) {
        Ok(entries) => entries,
        Err(error) if absent(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    match std::fs::remove_dir(group) {
        Err(error) if !absent(&error) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "\
tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";

    #[test]
    fn every_controller_and_the_unified_hierarchy_are_found() {
        let found = hierarchies(BOTH, |_| "memory pids\n".to_owned());
        let mounts: Vec<_> = found.iter().map(|one| one.mount.to_str().unwrap()).collect();
        let expected =
            ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/unified"];
        assert_eq!(mounts, expected);
        assert!(found[0].has("cpuset") && !found[0].unified);
        assert!(found[1].has("cpu") && found[1].has("cpuacct") && !found[1].has("memory"));
        assert!(found[2].unified && found[2].has("pids") && !found[2].has("rw"));
    }

    #[test]
    fn a_group_with_processes_is_named_as_the_reason() {
        const BUSY: i32 = 16;
        let refused = |code| {
            let error = std::io::Error::from_raw_os_error(code);
            refused_delegation(Path::new("/sys/fs/cgroup"), error).to_string()
        };
        assert!(
            refused(BUSY).starts_with("/sys/fs/cgroup has processes and so"),
            "{}",
            refused(BUSY)
        );
        assert!(refused(13).starts_with("Permission denied"), "{}", refused(13));
    }

    /// A hierarchy of version 2 in a folder, of which the first group passes nothing on: its file is missing.
    #[test]
    fn a_group_that_one_hierarchy_refuses_is_left_in_none() {
        let machine = tempfile::tempdir().unwrap();
        let [one, two] = ["cpu", "unified"].map(|name| machine.path().join(name));
        std::fs::create_dir_all(one.join("sluice-lab/other")).unwrap();
        std::fs::create_dir(&two).unwrap();
        std::fs::write(two.join("cgroup.controllers"), "").unwrap();
        let mounts =
            format!("c {} cgroup rw,cpu 0 0\nc {} cgroup2 rw 0 0\n", one.display(), two.display());
        let refused = create_in(&hierarchies(&mounts, |_| String::new()), "sluice-lab/x/node");
        let said = refused.unwrap_err().to_string();
        assert!(
            said.starts_with(&format!("create control group {}/sluice-lab/x", two.display())),
            "{said}"
        );
        assert!(!one.join("sluice-lab/x").exists(), "a group is left");
        assert!(one.join("sluice-lab/other").exists() && !two.join("sluice-lab").exists());
    }

    #[test]
    fn labs_of_one_name_have_different_groups() {
        let first = of_lab(Path::new("/a/default"));
        assert!(first.starts_with("sluice-lab/default-"), "{first}");
        assert_ne!(first, of_lab(Path::new("/b/default")));
    }

    #[test]
    fn a_group_that_is_absent_is_removed_already() {
        let directory = tempfile::tempdir().unwrap();
        assert!(remove_tree(&directory.path().join("none")).is_ok());
        std::fs::create_dir_all(directory.path().join("lab/node/pod")).unwrap();
        remove_tree(&directory.path().join("lab")).unwrap();
        assert!(!directory.path().join("lab").exists());
    }
}
