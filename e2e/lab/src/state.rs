//! The state of a lab, in `<root>/<name>/lab.json`.
//!
//! `up` writes it before the supervisor exists, and only the supervisor writes it from then on, always by a rename, so a reader
//! never sees a partial file.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::binaries::Binaries;
use crate::binaries::node_programs::NodePrograms;
use crate::component::Component;
use crate::identity::ProcessId;
use crate::real_nodes::node::RealNode;

/// The name of the manager cluster.
pub const MANAGER: &str = "manager";

/// Why the state could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// No directory is available.
    #[error("no place for the labs' state: set SLUICE_LAB_HOME, XDG_STATE_HOME or HOME")]
    NoRoot,
    /// A name that cannot be a directory's.
    #[error("lab name {0:?} is not made of letters, digits, '-', '_' and '.'")]
    BadName(String),
    /// There is no lab of that name.
    #[error("no lab is called {0:?}")]
    NoLab(String),
    /// The lab has no such cluster.
    #[error("lab {lab:?} has no cluster {cluster:?}, only {}", .known.join(", "))]
    NoCluster {
        /// The lab.
        lab: String,
        /// The requested name.
        cluster: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A file could not be read or written.
    #[error("{operation} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("read {}: {source}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// How far a lab is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Phase {
    /// Its processes are being started.
    Starting,
    /// Every cluster answered.
    Ready {
        /// The elapsed time.
        after_millis: u64,
    },
    /// A cluster could not be started; its processes have been stopped.
    Failed {
        /// Why, with the last lines of the log.
        reason: String,
    },
}

/// One lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabState {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// The process that owns the lab's processes; during creation, the creating process.
    pub supervisor: ProcessId,
    /// How far it is.
    pub phase: Phase,
    /// The programs it runs.
    pub binaries: Binaries,
    /// The programs of its real nodes, if it has any.
    #[serde(default)]
    pub node_programs: Option<NodePrograms>,
    /// Whether the API servers write audit logs.
    pub audit: bool,
    /// The manager first, then the workers.
    pub clusters: Vec<ClusterState>,
    /// Programs beside the clusters, by name.
    #[serde(default)]
    pub programs: BTreeMap<String, ProcessId>,
}

/// One cluster of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterState {
    /// `manager`, `worker-1`, …
    pub name: String,
    /// Its directory: certificates, the store, logs, the kubeconfig.
    pub directory: PathBuf,
    /// The port of etcd's clients.
    pub etcd_port: u16,
    /// The port of etcd's peers (there are none, but etcd insists).
    pub etcd_peer_port: u16,
    /// The API server's port.
    pub api_port: u16,
    /// The controller manager's port.
    pub controller_manager_port: u16,
    /// The scheduler's port.
    pub scheduler_port: u16,
    /// kwok's port.
    pub kwok_port: u16,
    /// Processes by component; a component that was never started is absent.
    pub processes: BTreeMap<Component, ProcessId>,
    /// Its real nodes, beside those that kwok simulates.
    #[serde(default)]
    pub real_nodes: Vec<RealNode>,
}

impl ClusterState {
    /// Number of ports per cluster.
    pub const PORTS: usize = 6;

    /// A cluster that has not been started yet.
    pub fn new(name: &str, lab: &Path, ports: [u16; Self::PORTS]) -> Self {
        let [etcd, etcd_peer, api, controller_manager, scheduler, kwok] = ports;
        Self {
            name: name.to_owned(),
            directory: lab.join(name),
            etcd_port: etcd,
            etcd_peer_port: etcd_peer,
            api_port: api,
            controller_manager_port: controller_manager,
            scheduler_port: scheduler,
            kwok_port: kwok,
            processes: BTreeMap::new(),
            real_nodes: Vec::new(),
        }
    }

    /// All its ports.
    pub fn ports(&self) -> [u16; Self::PORTS] {
        [
            self.etcd_port,
            self.etcd_peer_port,
            self.api_port,
            self.controller_manager_port,
            self.scheduler_port,
            self.kwok_port,
        ]
    }

    /// The address of its API server.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_port)
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// The log of a component.
    pub fn log(&self, component: Component) -> PathBuf {
        self.directory.join(format!("{component}.log"))
    }

    /// The name of a real node among the programs of the lab.
    pub fn program_of(&self, node: &RealNode) -> String {
        format!("{}/{}", self.name, node.name)
    }

    /// The API server's audit log, one JSON object per line; there when the lab was started with it.
    pub fn audit_log(&self) -> PathBuf {
        self.directory.join("audit.log")
    }
}

impl LabState {
    /// The cluster of that name.
    pub fn cluster(&self, name: &str) -> Result<&ClusterState, StateError> {
        self.clusters.iter().find(|cluster| cluster.name == name).ok_or_else(|| {
            StateError::NoCluster {
                lab: self.name.clone(),
                cluster: name.to_owned(),
                known: self.clusters.iter().map(|cluster| cluster.name.clone()).collect(),
            }
        })
    }

    /// Whether the process that owns it is there.
    pub fn is_alive(&self) -> bool {
        self.supervisor.is_alive()
    }

    /// The socket of the supervisor.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("control.sock")
    }

    /// The log of a program beside the clusters.
    pub fn program_log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }

    /// Memory resident in all its processes, in bytes.
    pub fn resident(&self) -> u64 {
        let processes = self.clusters.iter().flat_map(|cluster| cluster.processes.values());
        let processes = processes.chain(self.programs.values());
        processes.chain([&self.supervisor]).map(|process| process.resident()).sum()
    }

    /// Writes it.
    pub fn save(&self) -> Result<(), StateError> {
        let path = file_in(&self.directory);
        let malformed = |source| StateError::Malformed { path: path.clone(), source };
        let text = serde_json::to_vec_pretty(self).map_err(malformed)?;
        let unfinished = path.with_extension("json.new");
        write_private(&unfinished, &text).map_err(io("write", &unfinished))?;
        std::fs::rename(&unfinished, &path).map_err(io("rename", &unfinished))
    }

    /// Reads the lab in `directory`.
    pub fn load(directory: &Path) -> Result<Self, StateError> {
        let path = file_in(directory);
        let text = std::fs::read(&path).map_err(io("read", &path))?;
        serde_json::from_slice(&text).map_err(|source| StateError::Malformed { path, source })
    }
}

/// Writes a file that only its owner may read, because most files contain credentials.
pub fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content)
}

pub(crate) fn file_in(directory: &Path) -> PathBuf {
    directory.join("lab.json")
}

pub(crate) fn io(
    operation: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> StateError {
    let path = path.to_owned();
    move |source| StateError::Io { operation, path, source }
}
