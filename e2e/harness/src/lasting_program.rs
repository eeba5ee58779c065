//! A program of the project that lives as long as the lab: the supervisor starts it, not this process.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lab::LabState;
use lab::control::{self, ControlError, ControlRequest, ProgramLaunch};
use tokio::time::timeout;

use crate::lab::{TestLab, program};
use crate::process::{Launch, ProcessError, until_ok};

/// A program that the lab's supervisor runs.
#[derive(Debug)]
pub struct LastingProgram {
    name: String,
    log: PathBuf,
}

impl Launch {
    /// Starts the program under a name that no other program of the lab has. It ends with the lab; its output goes to
    /// `NAME.log` in the lab's directory. Variables of the environment are not passed on.
    pub async fn start_lasting(
        self,
        name: &str,
        lab: &TestLab,
    ) -> Result<LastingProgram, ProcessError> {
        let path = match &self.folder {
            Some(folder) => folder.join(&self.program),
            None => program(&self.program)?,
        };
        let text = |argument: OsString| argument.to_string_lossy().into_owned();
        let launch = ProgramLaunch {
            name: name.to_owned(),
            program: path,
            arguments: self.arguments.into_iter().map(text).collect(),
        };
        let (state, request) = (lab.state().clone(), ControlRequest::Run(launch));
        let asked = tokio::task::spawn_blocking(move || control::ask(&state, &request)).await;
        asked.unwrap_or_else(|error| Err(ControlError::Failed(error.to_string())))?;
        Ok(LastingProgram { name: name.to_owned(), log: lab.state().program_log(name) })
    }
}

impl LastingProgram {
    /// Waits until `GET http://<address><path>` is answered with 200.
    pub async fn ready(
        &self,
        address: SocketAddr,
        path: &str,
        within: Duration,
    ) -> Result<(), ProcessError> {
        let mut last = String::new();
        let ready = timeout(within, until_ok(address, path, &mut last)).await;
        ready.map_err(|_| {
            ProcessError::not_ready(&self.name, (address, path, within), last, &self.log)
        })
    }
}

impl TestLab {
    /// A lab that was started before and stays when this value is dropped.
    #[must_use]
    pub fn attached(state: LabState) -> Self {
        Self::of(state, None)
    }
}
