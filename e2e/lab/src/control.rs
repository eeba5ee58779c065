//! What can be asked of a running supervisor, over `control.sock` in the lab's directory: one JSON value each way, one
//! request per connection.
//!
//! Only what the supervisor alone can do goes this way. Pausing and killing are signals, which anybody may send, and which
//! must work when the supervisor does not.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};

use crate::component::Component;
use crate::state::LabState;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    /// Start a component again, killing it first when it runs. Answered when it accepts connections.
    Restart {
        /// The cluster.
        cluster: String,
        /// The component.
        component: Component,
        /// Arguments after the usual ones, until the next restart. The programs take the last of two that disagree.
        #[serde(default)]
        extra: Vec<String>,
    },
    /// Stop everything. Answered when all processes are gone.
    Down,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// It is done.
    Done,
    /// It could not be done.
    Failed(String),
}

/// Why a request has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The supervisor could not be asked.
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
        /// What it said.
        answer: String,
    },
    /// It tried and failed.
    #[error("{0}")]
    Failed(String),
}

/// Asks the supervisor of `lab` and waits for the answer.
pub fn ask(lab: &LabState, request: &Request) -> Result<(), ControlError> {
    let answer = exchange(lab, request)
        .map_err(|source| ControlError::Unreachable { lab: lab.name.clone(), source })?;
    match serde_json::from_str(&answer) {
        Ok(Answer::Done) => Ok(()),
        Ok(Answer::Failed(reason)) => Err(ControlError::Failed(reason)),
        Err(_) => Err(ControlError::Garbled { lab: lab.name.clone(), answer }),
    }
}

fn exchange(lab: &LabState, request: &Request) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(lab.socket())?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}
