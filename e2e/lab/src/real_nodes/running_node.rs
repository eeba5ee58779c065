//! A real node of a running lab, as other processes of root find and enter it. The supervisor is not needed.

use std::path::Path;
use std::process::{Command, Stdio};

use super::gateway;
use super::init::IMPORT_SUBCOMMAND;
use super::links::LinkError;
use super::node::RealNode;
use crate::identity::children;
use crate::state::{ClusterState, LabState, StateError};

/// Something could not be done with a running node.
#[derive(Debug, thiserror::Error)]
pub enum RunningNodeError {
    /// The lab is not there.
    #[error(transparent)]
    State(#[from] StateError),
    /// The link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A process of the lab has ended.
    #[error("{name} does not run")]
    NotRunning {
        /// The node, the gateway, or a program of the node.
        name: String,
    },
    /// The system refused something.
    #[error("{operation} {name}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// With which program or file.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A command in the namespaces of the node failed.
    #[error("{operation} {name}: {output}")]
    Failed {
        /// What was tried.
        operation: &'static str,
        /// With which program or file.
        name: String,
        /// What was printed.
        output: String,
    },
}

/// A real node of a running lab.
#[derive(Debug)]
pub struct RunningNode {
    pub(super) node: RealNode,
    /// Its name among the programs of the lab.
    pub(super) name: String,
    pub(super) first_process: u32,
    pub(super) gateway: u32,
}

impl RunningNode {
    /// The node of a cluster, as it runs now.
    ///
    /// # Errors
    /// If it does not run.
    pub fn find(
        lab: &Path,
        cluster: &ClusterState,
        node: &RealNode,
    ) -> Result<Self, RunningNodeError> {
        let state = LabState::load(lab)?;
        let name = cluster.program_of(node);
        let pid = |name: &str| {
            let process = state.programs.get(name).filter(|process| process.is_alive());
            process
                .map(|process| process.pid())
                .ok_or_else(|| RunningNodeError::NotRunning { name: name.to_owned() })
        };
        let first_process = children(pid(&name)?).into_iter().next();
        let first_process =
            first_process.ok_or_else(|| RunningNodeError::NotRunning { name: name.clone() })?;
        let gateway = pid(gateway::PROGRAM)?;
        Ok(Self { node: node.clone(), name, first_process, gateway })
    }

    /// Its name in the API.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// Imports the images of an archive. `sluice_lab` is the tool.
    ///
    /// # Errors
    /// If the file is not there, or is not an archive of images.
    pub fn import(&self, sluice_lab: &Path, archive: &Path) -> Result<(), RunningNodeError> {
        let name = format!("{} on {}", archive.display(), self.name);
        let opened = std::fs::File::open(archive);
        let archive = opened.map_err(|source| system("import", name.clone(), source))?;
        self.run(sluice_lab, "import", &name, &[IMPORT_SUBCOMMAND], archive.into())
    }

    /// Runs a subcommand of the tool for this node in its namespaces.
    pub(super) fn run(
        &self,
        sluice_lab: &Path,
        operation: &'static str,
        name: &str,
        subcommand: &[&str],
        input: Stdio,
    ) -> Result<(), RunningNodeError> {
        let (own, arguments) = subcommand.split_at(1);
        // What it starts becomes a child of the node's process 1 and ends with it.
        let output = Command::new("nsenter")
            .args(["--target", &self.first_process.to_string()])
            .args(["--mount", "--net", "--pid", "--uts", "--ipc"])
            .arg(sluice_lab)
            .args(own)
            .arg(&self.node.directory)
            .args(arguments)
            .stdin(input)
            .output();
        let output = output.map_err(|source| system(operation, name.to_owned(), source))?;
        if output.status.success() {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(RunningNodeError::Failed { operation, name: name.to_owned(), output })
    }
}

pub(super) fn system(
    operation: &'static str,
    name: String,
    source: std::io::Error,
) -> RunningNodeError {
    RunningNodeError::System { operation, name, source }
}
