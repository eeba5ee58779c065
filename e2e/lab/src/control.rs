//! The requests of a running supervisor, over `control.sock` in the lab's directory: one JSON value in each direction, one
//! request per connection.
//!
//! Only operations that need the supervisor use it. Pausing and killing are signals, which work without the supervisor.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::component::Component;
use crate::state::LabState;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ControlRequest {
    /// Start a component again, killing it first when it runs. Answered when it accepts connections.
    Restart {
        /// The cluster.
        cluster: String,
        /// The component.
        component: Component,
        /// Arguments after the default ones, until the next restart. The programs use the last of two values.
        #[serde(default)]
        extra: Vec<String>,
    },
    /// Start a program beside the clusters. It ends with the lab. Answered when it was started.
    Run(ProgramLaunch),
    /// Stop the lab. The response follows the end of all processes.
    Down,
}

/// A program beside the clusters. Its output goes to the log of its name in the lab's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLaunch {
    /// A name that no other program of the lab has.
    pub name: String,
    /// The file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ControlResponse {
    /// The request succeeded.
    Done,
    /// The request failed.
    Failed(String),
}

/// Why a request has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The supervisor could not be reached.
    #[error("ask the supervisor of lab {lab:?}: {source}")]
    Unreachable {
        /// The lab.
        lab: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It did not understand, or is of another version.
    #[error("the supervisor of lab {lab:?} answered {answer:?}")]
    Garbled {
        /// The lab.
        lab: String,
        /// The response.
        answer: String,
    },
    /// It tried and failed.
    #[error("{0}")]
    Failed(String),
}

/// Asks the supervisor of `lab` and waits for the answer.
pub fn ask(lab: &LabState, request: &ControlRequest) -> Result<(), ControlError> {
    let answer = exchange(lab, request)
        .map_err(|source| ControlError::Unreachable { lab: lab.name.clone(), source })?;
    match serde_json::from_str(&answer) {
        Ok(ControlResponse::Done) => Ok(()),
        Ok(ControlResponse::Failed(reason)) => Err(ControlError::Failed(reason)),
        Err(_) => Err(ControlError::Garbled { lab: lab.name.clone(), answer }),
    }
}

fn exchange(lab: &LabState, request: &ControlRequest) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(lab.socket())?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}
