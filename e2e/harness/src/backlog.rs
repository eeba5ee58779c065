//! The logs that a failed test prints: those of the programs that tests of this process run on its lab.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lab::identity::{self, Liveness};
use lab::{ClusterState, LabState, logs};

/// Last lines per program.
const LINES: usize = 15;

/// Where the lines of one namespace are searched, from the end.
const SEARCHED_LINES: usize = 2000;

/// Name and pid of the program that writes a log.
static LOGS: Mutex<BTreeMap<PathBuf, (String, u32)>> = Mutex::new(BTreeMap::new());

/// A program called `name` writes to `path` from now on.
pub(crate) fn add(name: &str, pid: u32, path: &Path) {
    let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    logs.insert(path.to_owned(), (name.to_owned(), pid));
}

/// The program has ended, and its log is not printed.
pub(crate) fn remove(path: &Path) {
    LOGS.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
}

/// The last lines of the log of every program of a cluster's lab, those of managers first; with a namespace, the lines that name it.
pub(crate) fn tails(cluster: &ClusterState, namespace: Option<&str>) -> String {
    let lab = cluster.directory.parent().unwrap_or(&cluster.directory);
    let logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut logs: Vec<((String, u32), PathBuf)> = logs
        .into_iter()
        .filter(|(path, _)| path.starts_with(lab))
        .map(|(path, program)| (program, path))
        .collect();
    logs.sort_unstable_by(|one, other| other.cmp(one));
    let mut text = String::new();
    for ((name, pid), path) in logs {
        let lines = namespace.map(|namespace| about(&path, namespace)).unwrap_or_default();
        let lines = if lines.is_empty() { logs::tail(&path, LINES) } else { lines };
        let cpu = identity::cpu_seconds(pid).unwrap_or_default();
        let _ = writeln!(
            text,
            "last lines of {name} (pid {pid}, {cpu:.0} s of CPU):\n{}",
            indented(&lines)
        );
    }
    text
}

/// The last lines of a log that name a namespace.
fn about(path: &Path, namespace: &str) -> String {
    let text = logs::tail(path, SEARCHED_LINES);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(namespace)).collect();
    lines[lines.len().saturating_sub(2 * LINES)..].join("\n")
}

/// Which components of a cluster are not running, with the last lines of the dead ones.
pub(crate) fn ailing(cluster: &ClusterState) -> String {
    // The state as it is now: a component may have been restarted.
    let directory = cluster.directory.parent().unwrap_or(&cluster.directory);
    let Ok(lab) = LabState::load(directory) else {
        return "the lab is gone\n".to_owned();
    };
    let mut text = String::new();
    let processes = lab.cluster(&cluster.name).map(|known| known.processes.clone());
    for (component, process) in processes.unwrap_or_default() {
        match process.liveness() {
            Liveness::Running => {}
            Liveness::Paused => {
                let _ = writeln!(text, "{component} of {} is paused", cluster.name);
            }
            Liveness::Gone => {
                let tail = indented(&logs::tail(&cluster.log(component), LINES));
                let _ = writeln!(text, "{component} of {} is dead:\n{tail}", cluster.name);
            }
        }
    }
    text
}

/// Moved to the right.
pub(crate) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
