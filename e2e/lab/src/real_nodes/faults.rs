//! Faults of a running real node: a program killed and started again, the link cut and connected again.
//!
//! Root calls these functions from any process; the supervisor is not needed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::gateway;
use super::init::RESTART_SUBCOMMAND;
use super::links::{self, LinkError};
use super::node::RealNode;
use crate::identity::ProcessId;
use crate::state::{ClusterState, LabState, StateError};

/// Why a fault could not be caused or ended.
#[derive(Debug, thiserror::Error)]
pub enum NodeFaultError {
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
        /// With which program.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program did not start again.
    #[error("start {name} again: {output}")]
    NotStarted {
        /// The program.
        name: String,
        /// What was printed.
        output: String,
    },
}

/// A real node of a running lab.
#[derive(Debug)]
pub struct RunningNode {
    node: RealNode,
    name: String,
    first_process: u32,
    gateway: u32,
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
    ) -> Result<Self, NodeFaultError> {
        let state = LabState::load(lab)?;
        let name = cluster.program_of(node);
        let pid = |name: &str| {
            let process = state.programs.get(name).filter(|process| process.is_alive());
            process
                .map(|process| process.pid())
                .ok_or_else(|| NodeFaultError::NotRunning { name: name.to_owned() })
        };
        let first_process = children(pid(&name)?).into_iter().next();
        let first_process =
            first_process.ok_or_else(|| NodeFaultError::NotRunning { name: name.clone() })?;
        let gateway = pid(gateway::PROGRAM)?;
        Ok(Self { node: node.clone(), name, first_process, gateway })
    }

    /// Its name in the API.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// Kills a program of the node, such as `kubelet`, and waits for its end. The containers go on.
    ///
    /// # Errors
    /// If it does not run.
    pub fn kill(&self, program: &str) -> Result<(), NodeFaultError> {
        let name = format!("{program} of {}", self.name);
        let found = children(self.first_process).into_iter().find(|pid| runs(*pid, program));
        let process = found.and_then(ProcessId::of);
        let process = process.ok_or_else(|| NodeFaultError::NotRunning { name: name.clone() })?;
        let failed = |source| NodeFaultError::System { operation: "kill", name, source };
        process.signal(Signal::KILL).map_err(failed)?;
        while process.is_alive() {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Starts a killed program again. `sluice_lab` is the tool.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self, sluice_lab: &Path, program: &str) -> Result<(), NodeFaultError> {
        let name = format!("{program} of {}", self.name);
        // What it starts becomes a child of the node's process 1 and ends with it.
        let output = Command::new("nsenter")
            .args(["--target", &self.first_process.to_string()])
            .args(["--mount", "--net", "--pid", "--uts", "--ipc"])
            .arg(sluice_lab)
            .arg(RESTART_SUBCOMMAND)
            .arg(&self.node.directory)
            .arg(program)
            .stdin(Stdio::null())
            .output();
        let output = output.map_err(|source| NodeFaultError::System {
            operation: "start",
            name: name.clone(),
            source,
        })?;
        if output.status.success() {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(NodeFaultError::NotStarted { name, output })
    }

    /// Cuts the node off: packets to and from it are lost.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn cut_off(&self) -> Result<(), NodeFaultError> {
        Ok(links::cut_off(self.gateway, &self.node)?)
    }

    /// Connects the node again.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn reconnect(&self) -> Result<(), NodeFaultError> {
        Ok(links::reconnect(self.gateway, &self.node)?)
    }
}

fn children(parent: u32) -> Vec<u32> {
    let file = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(file).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether a process runs the program of this file name.
fn runs(process: u32, program: &str) -> bool {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let file = line.split(|byte| *byte == 0).next().unwrap_or_default();
    PathBuf::from(String::from_utf8_lossy(file).into_owned()).ends_with(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_file_name() {
        // This test: the arguments of a process that was just started may not be there yet.
        let own = std::env::current_exe().unwrap();
        let name = own.file_name().unwrap().to_str().unwrap();
        assert!(runs(std::process::id(), name));
        assert!(!runs(std::process::id(), name.get(1..).unwrap()), "a part of the name");
        assert!(!runs(u32::MAX, name), "there is no such process");
    }
}
