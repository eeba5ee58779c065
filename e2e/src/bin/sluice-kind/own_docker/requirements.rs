//! What the machine lacks for a daemon of its own and the clusters on it.

use std::path::Path;

use lab::real_nodes::inotify::InotifyDemand;
use lab::real_nodes::{memory, preflight};

/// Three clusters, one of them of two nodes, which open 91 instances: the systemd of a node watches as much as a second kubelet.
const DEMAND: InotifyDemand = InotifyDemand { clusters: 3, nodes: 8 };

/// Gibibytes that three clusters and the test take.
const MEMORY: u64 = 3;

/// Directories that the daemon replaces or writes to a layer of its own; its directory is not below them.
pub(super) const COVERED: [&str; 3] = ["/run", "/etc", "/opt"];

/// Why no daemon can be started, in one line.
pub(super) fn lacking() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("starting a daemon needs root".to_owned());
    }
    if !is_installed("dockerd", &std::env::var("PATH").unwrap_or_default()) {
        return Some("dockerd is not installed, which Debian's package docker.io has".to_owned());
    }
    let mut points = preflight::lacking(DEMAND);
    points.extend(memory::lacking(MEMORY));
    (!points.is_empty()).then(|| format!("a daemon cannot be started: {}", points.join("; ")))
}

/// What is wrong with the place of the daemon's directory.
pub(super) fn misplaced(directory: &Path) -> Option<String> {
    let covered = COVERED.iter().find(|covered| directory.starts_with(covered))?;
    Some(format!(
        "the daemon's files are in {}, and it covers {covered}; set XDG_STATE_HOME to another place",
        directory.display()
    ))
}

fn is_installed(program: &str, search_path: &str) -> bool {
    std::env::split_paths(search_path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_below_what_the_daemon_covers_is_refused() {
        let said = misplaced(Path::new("/run/user/0/sluice-kind")).unwrap();
        assert!(said.contains("/run/user/0/sluice-kind, and it covers /run;"), "{said}");
        assert_eq!(misplaced(Path::new("/runs/sluice-kind")), None);
        assert_eq!(misplaced(Path::new("/root/.local/state/sluice-kind")), None);
    }

    #[test]
    fn a_program_is_looked_for_in_every_folder_of_the_search_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("dockerd"), "").unwrap();
        let search_path = format!("/absent:{}", folder.path().display());
        assert!(is_installed("dockerd", &search_path));
        assert!(!is_installed("podman", &search_path) && !is_installed("dockerd", "/absent"));
    }
}
