//! Faults of a running real node: a program killed and started again, the link cut and connected again.

use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use super::init::RESTART_SUBCOMMAND;
use super::links;
use super::running_node::{RunningNode, RunningNodeError, system};
use crate::identity::{ProcessId, children};

impl RunningNode {
    /// Kills a program of the node, such as `kubelet`, and waits for its end. The containers go on.
    ///
    /// # Errors
    /// If it does not run.
    pub fn kill(&self, program: &str) -> Result<(), RunningNodeError> {
        let name = format!("{program} of {}", self.name);
        let found = children(self.first_process).into_iter().find(|pid| runs(*pid, program));
        let process = found.and_then(ProcessId::of);
        let process = process.ok_or_else(|| RunningNodeError::NotRunning { name: name.clone() })?;
        process.signal(Signal::KILL).map_err(|source| system("kill", name, source))?;
        process.wait_for_end();
        Ok(())
    }

    /// Starts a killed program again. `sluice_lab` is the tool.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self, sluice_lab: &Path, program: &str) -> Result<(), RunningNodeError> {
        let name = format!("{program} of {}", self.name);
        self.run(sluice_lab, "start", &name, &[RESTART_SUBCOMMAND, program], Stdio::null())
    }

    /// Cuts the node off: packets to and from it are lost.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn cut_off(&self) -> Result<(), RunningNodeError> {
        Ok(links::cut_off(self.gateway, &self.node)?)
    }

    /// Connects the node again.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn reconnect(&self) -> Result<(), RunningNodeError> {
        Ok(links::reconnect(self.gateway, &self.node)?)
    }
}

/// Whether a process runs the program of this file name.
fn runs(process: u32, program: &str) -> bool {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let file = line.split(|byte| *byte == 0).next().unwrap_or_default();
    Path::new(&*String::from_utf8_lossy(file)).ends_with(program)
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
