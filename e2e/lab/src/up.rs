//! Starts and stops labs, from outside the supervisor.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::iter;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::binaries::node_programs::NodePrograms;
use crate::binaries::{Binaries, BinariesError};
use crate::control::{self, ControlError, ControlRequest};
use crate::identity::ProcessId;
use crate::leftovers::{self, LeftoverError};
use crate::ports::{self, NoPorts};
use crate::real_nodes::inotify::InotifyDemand;
use crate::real_nodes::node::{self, RealNode, RealNodeCounts};
use crate::real_nodes::{cgroups, gateway, preflight};
use crate::root::StateRoot;
use crate::state::{ClusterState, LabState, MANAGER, Phase, StateError, io};
use crate::{logs, supervisor};

/// Pause between two reads of the state file.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A supervisor that stops kills its children and removes its files in less than a second.
const STOPPING: Duration = Duration::from_secs(20);

/// Why a lab could not be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The state could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// Leftovers of crashed labs could not be removed.
    #[error(transparent)]
    Leftovers(#[from] LeftoverError),
    /// Real nodes cannot run here.
    #[error("real nodes cannot run here: {}", .0.join("; "))]
    RealNodes(Vec<String>),
    /// The programs could not be had.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// The machine has too few free ports.
    #[error(transparent)]
    Ports(#[from] NoPorts),
    /// A lab of that name is there.
    #[error("lab {0:?} is up already; take it down first, or use another name")]
    AlreadyUp(String),
    /// The supervisor could not be started.
    #[error("start the supervisor {}: {source}", .program.display())]
    Supervisor {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The supervisor ended while the lab was starting.
    #[error("the supervisor of lab {lab:?} ended; its last lines:\n{log}")]
    SupervisorEnded {
        /// The lab.
        lab: String,
        /// The end of its log.
        log: String,
    },
    /// A cluster did not start.
    #[error("lab {lab:?} did not start: {reason}")]
    Failed {
        /// The lab.
        lab: String,
        /// Why.
        reason: String,
    },
    /// The supervisor failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The supervisor did not stop.
    #[error("the supervisor of lab {lab:?} (pid {pid}) did not stop in {} s", STOPPING.as_secs())]
    Stuck {
        /// The lab.
        lab: String,
        /// Its supervisor.
        pid: u32,
    },
}

/// What the lab belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabOwner {
    /// No process: it stays until it is taken down.
    Detached,
    /// This process: the lab ends with it in any case.
    ThisProcess,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The lab's name.
    pub name: String,
    /// How many worker clusters, besides the manager.
    pub workers: usize,
    /// Real nodes, beside those that kwok simulates.
    pub real_nodes: RealNodeCounts,
    /// Whether the API servers write audit logs.
    pub audit: bool,
    /// What it belongs to.
    pub owner: LabOwner,
    /// The `sluice-lab` program, which is also the supervisor.
    pub sluice_lab: PathBuf,
}

/// A lab that is up.
#[derive(Debug)]
pub struct Lab {
    /// Its state at the moment when it became ready.
    pub state: LabState,
    /// With [`LabOwner::ThisProcess`]: closing it ends the lab.
    pub lifeline: Option<ChildStdin>,
}

/// Starts a lab and waits until it is ready. Leftovers of crashed labs are removed first.
pub fn up(root: &StateRoot, options: &Options, report: &dyn Fn(&str)) -> Result<Lab, UpError> {
    check_real_nodes(root, options)?;
    let binaries = Binaries::find(report)?;
    let node_programs = match options.real_nodes.total(options.workers) {
        0 => None,
        _ => Some(NodePrograms::find(report)?),
    };
    let lock = root.lock()?;
    for removed in leftovers::sweep(root)? {
        report(&format!(
            "removed leftover {} ({} of its processes were running)",
            removed.directory.display(),
            removed.killed
        ));
    }
    let mut state = make(root, options, binaries, node_programs)?;
    let started = start_supervisor(&state, options);
    let (mut child, lifeline) = match started {
        Ok(started) => started,
        Err(error) => {
            leftovers::remove_directory(&state.directory)?;
            return Err(error);
        }
    };
    // From here on the supervisor owns the directory, and the lock can be released.
    if let Some(id) = ProcessId::of(child.id()) {
        state.supervisor = id;
        wait_for_owner(&state, &mut child, lock)?;
    }
    let state = wait_until_ready(&state, &mut child)?;
    Ok(Lab { state, lifeline })
}

/// Lays the lab out: ports, names, directories, the first state.
fn make(
    root: &StateRoot,
    options: &Options,
    binaries: Binaries,
    node_programs: Option<NodePrograms>,
) -> Result<LabState, UpError> {
    let directory = root.directory_of(&options.name)?;
    if directory.exists() {
        return Err(UpError::AlreadyUp(options.name.clone()));
    }
    let names: Vec<String> = iter::once(MANAGER.to_owned())
        .chain((1..=options.workers).map(|number| format!("worker-{number}")))
        .collect();
    let ports = ports::free(names.len() * ClusterState::PORTS, &ports_of_others(root)?)?;
    let (ports, _) = ports.as_chunks::<{ ClusterState::PORTS }>();
    let mut clusters: Vec<_> = names
        .iter()
        .zip(ports)
        .map(|(name, ports)| ClusterState::new(name, &directory, *ports))
        .collect();
    add_real_nodes(&mut clusters, options.real_nodes);
    let nodes = clusters.iter().flat_map(|cluster| &cluster.real_nodes);
    let paths = clusters.iter().map(|cluster| &cluster.directory);
    for path in paths.chain(nodes.map(|node| &node.directory)) {
        std::fs::create_dir_all(path).map_err(io("create", path))?;
    }
    let own = ProcessId::own()
        .ok_or_else(|| io("read", &directory)(std::io::Error::other("/proc is not there")))?;
    let state = LabState {
        name: options.name.clone(),
        directory,
        supervisor: own,
        phase: Phase::Starting,
        binaries,
        node_programs,
        audit: options.audit,
        clusters,
        programs: BTreeMap::new(),
    };
    state.save()?;
    Ok(state)
}

/// Gives every cluster its real nodes, with numbers that are unique in the lab.
fn add_real_nodes(clusters: &mut [ClusterState], counts: RealNodeCounts) {
    let mut numbers = 1..;
    let counts = counts.of_clusters(clusters.len().saturating_sub(1));
    for (cluster, count) in clusters.iter_mut().zip(counts) {
        let nodes = (1..=count).zip(numbers.by_ref());
        let directory = cluster.directory.clone();
        let nodes = nodes.map(|(place, number)| RealNode::new(&directory, place, number));
        cluster.real_nodes = nodes.collect();
    }
}

/// What this machine and the place of a lab lack for real nodes. Each point is one sentence.
///
/// # Errors
/// If the name is none of a lab.
pub fn lacking_for_real_nodes(
    root: &StateRoot,
    name: &str,
    demand: InotifyDemand,
) -> Result<Vec<String>, StateError> {
    let directory = root.directory_of(name)?;
    let mut lacking = preflight::lacking(demand);
    lacking.extend(preflight::misplaced(&directory, &gateway::egress_socket(&directory)));
    Ok(lacking)
}

/// Whether this lab can have its real nodes.
fn check_real_nodes(root: &StateRoot, options: &Options) -> Result<(), UpError> {
    let count = options.real_nodes.total(options.workers);
    if count == 0 {
        return Ok(());
    }
    if count > node::MOST {
        let most = format!("a lab has at most {} real nodes", node::MOST);
        return Err(UpError::RealNodes(vec![most]));
    }
    let demand = InotifyDemand { clusters: options.workers + 1, nodes: count };
    let lacking = lacking_for_real_nodes(root, &options.name, demand)?;
    if lacking.is_empty() { Ok(()) } else { Err(UpError::RealNodes(lacking)) }
}

fn ports_of_others(root: &StateRoot) -> Result<HashSet<u16>, StateError> {
    let directories = root.directories()?;
    let labs = directories.iter().filter_map(|directory| LabState::load(directory).ok());
    let clusters = labs.flat_map(|lab| lab.clusters);
    Ok(clusters.flat_map(|cluster| cluster.ports()).collect())
}

fn start_supervisor(
    state: &LabState,
    options: &Options,
) -> Result<(Child, Option<ChildStdin>), UpError> {
    let log_path = supervisor_log(state);
    let log = File::create(&log_path).map_err(io("create", &log_path))?;
    let errors = log.try_clone().map_err(io("open", &log_path))?;
    let mut command = Command::new(&options.sluice_lab);
    command.arg(supervisor::SUBCOMMAND).arg(&state.directory);
    let input = match options.owner {
        LabOwner::Detached => Stdio::null(),
        LabOwner::ThisProcess => {
            command.arg("--owned");
            Stdio::piped()
        }
    };
    // A group of its own, so that a Ctrl-C in the terminal doesn't reach the lab.
    command.process_group(0).current_dir("/").stdin(input).stdout(log).stderr(errors);
    let mut child = command
        .spawn()
        .map_err(|source| UpError::Supervisor { program: options.sluice_lab.clone(), source })?;
    let lifeline = child.stdin.take();
    Ok((child, lifeline))
}

/// Holds the lock until the supervisor is recorded as owner, so that the lab does not count as a leftover.
fn wait_for_owner(state: &LabState, child: &mut Child, lock: File) -> Result<(), UpError> {
    while LabState::load(&state.directory)?.supervisor != state.supervisor {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return Err(ended(state));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    drop(lock);
    Ok(())
}

fn wait_until_ready(state: &LabState, child: &mut Child) -> Result<LabState, UpError> {
    loop {
        let exited = matches!(child.try_wait(), Ok(Some(_)));
        let now = LabState::load(&state.directory)?;
        match now.phase {
            Phase::Ready { .. } => return Ok(now),
            Phase::Failed { reason } => {
                return Err(UpError::Failed { lab: state.name.clone(), reason });
            }
            Phase::Starting if exited => return Err(ended(state)),
            Phase::Starting => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

fn ended(state: &LabState) -> UpError {
    UpError::SupervisorEnded {
        lab: state.name.clone(),
        log: logs::tail(&supervisor_log(state), 20),
    }
}

/// Output of the supervisor itself.
pub fn supervisor_log(state: &LabState) -> PathBuf {
    state.directory.join("supervisor.log")
}

/// Stops a lab and removes it. A lab without supervisor is removed as a leftover.
pub fn down(root: &StateRoot, name: &str) -> Result<(), UpError> {
    let state = root.lab(name)?;
    // A supervisor that is still booting handles no requests, and one may hang.
    let ready = matches!(state.phase, Phase::Ready { .. });
    if state.is_alive() && !(ready && control::ask(&state, &ControlRequest::Down).is_ok()) {
        stop(&state)?;
    }
    let _lock = root.lock()?;
    if state.directory.exists() {
        leftovers::kill_processes(&state);
        cgroups::remove(&cgroups::of_lab(&state.directory)).map_err(LeftoverError::from)?;
        leftovers::remove_directory(&state.directory)?;
    }
    Ok(())
}

fn stop(state: &LabState) -> Result<(), UpError> {
    let signal = |signal| {
        let sent = state.supervisor.signal(signal);
        sent.map_err(io("signal the supervisor of", &state.directory))
    };
    signal(Signal::TERM)?;
    let begun = Instant::now();
    while state.supervisor.is_alive() {
        if begun.elapsed() > STOPPING {
            signal(Signal::KILL)?;
            let pid = state.supervisor.pid();
            return Err(UpError::Stuck { lab: state.name.clone(), pid });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_that_is_refused_leaves_no_directory() {
        let home = tempfile::tempdir().unwrap();
        let root = StateRoot::at(home.path().join("labs"));
        let options = Options {
            name: "large".to_owned(),
            workers: 2,
            real_nodes: RealNodeCounts { manager: 0, each_worker: node::MOST, more_of_last: 0 },
            audit: false,
            owner: LabOwner::ThisProcess,
            sluice_lab: PathBuf::from("/absent"),
        };
        let refused = up(&root, &options, &|_| {}).unwrap_err();
        assert!(refused.to_string().contains("a lab has at most"), "{refused}");
        assert!(!root.path().exists());
    }
}
