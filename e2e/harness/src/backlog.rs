//! The logs that a failed test prints: those of all programs that tests of this process run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lab::identity::Liveness;
use lab::{ClusterState, LabState, logs};

/// Last lines per program.
const LINES: usize = 15;

/// Where the lines of one namespace are searched, from the end.
const SEARCHED_LINES: usize = 2000;

static LOGS: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// A program called `name` writes to `path` from now on.
pub(crate) fn add(name: &str, path: &Path) {
    LOGS.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), name.to_owned());
}

/// The program has ended, and its log is not printed.
pub(crate) fn remove(path: &Path) {
    LOGS.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
}

/// The last lines of every program's log, those of managers first; with a namespace, the lines that name it.
pub(crate) fn tails(namespace: Option<&str>) -> String {
    let logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut logs: Vec<(String, PathBuf)> =
        logs.into_iter().map(|(path, name)| (name, path)).collect();
    logs.sort_unstable_by(|one, other| other.cmp(one));
    let mut text = String::new();
    for (name, path) in logs {
        let lines = namespace.map(|namespace| about(&path, namespace)).unwrap_or_default();
        let lines = if lines.is_empty() { logs::tail(&path, LINES) } else { lines };
        let _ = writeln!(text, "last lines of {name}:\n{}", indented(&lines));
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
