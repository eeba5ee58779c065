//! The supervisor's side of `control.sock`.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::children::Child;
use super::{Supervisor, boot};
use crate::component::Component;
use crate::control::{ControlRequest, ControlResponse, ProgramLaunch};

/// A connection with an open request.
pub(super) struct ControlConnection(UnixStream);

impl ControlConnection {
    /// Says that the request has been carried out.
    pub(super) async fn done(self) {
        self.answer(&ControlResponse::Done).await;
    }

    /// A client that disconnected needs no response.
    async fn answer(mut self, answer: &ControlResponse) {
        if let Ok(mut line) = serde_json::to_vec(answer) {
            line.push(b'\n');
            let _ = self.0.write_all(&line).await;
        }
    }
}

impl Supervisor {
    /// Answers requests, one after the other, until one says to stop. Gives that one's connection, to be answered when
    /// everything is down.
    pub(super) async fn serve(&self, listener: &UnixListener) -> Option<ControlConnection> {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                return None;
            };
            let request = read(&mut stream).await;
            let connection = ControlConnection(stream);
            match request {
                Ok(ControlRequest::Down) => return Some(connection),
                Ok(ControlRequest::Restart { cluster, component, extra }) => {
                    let restarted = self.restart(&cluster, component, &extra).await;
                    connection.answer(&outcome(restarted)).await;
                }
                Ok(ControlRequest::Run(launch)) => {
                    connection.answer(&outcome(self.run_program(&launch))).await;
                }
                Err(reason) => connection.answer(&ControlResponse::Failed(reason)).await,
            }
        }
    }

    async fn restart(
        &self,
        cluster: &str,
        component: Component,
        extra: &[String],
    ) -> Result<(), String> {
        let state = self.state();
        let cluster = state.cluster(cluster).map_err(|error| error.to_string())?;
        let killed = self.children.kill(&cluster.name, component).await;
        killed.map_err(|error| format!("kill {component} of {}: {error}", cluster.name))?;
        boot::start(self, cluster, component, extra).await.map_err(|error| error.to_string())
    }

    /// Starts a program beside the clusters and records its process.
    fn run_program(&self, launch: &ProgramLaunch) -> Result<(), String> {
        self.start_program(launch).map(drop)
    }

    /// Starts a program beside the clusters, for callers that watch the process.
    pub(super) fn start_program(&self, launch: &ProgramLaunch) -> Result<Child, String> {
        let log = self.state().program_log(&launch.name);
        let started = self.children.start_program(launch, &log);
        let child = started.map_err(|error| format!("start {}: {error}", launch.name))?;
        let recorded = self.change(|state| {
            state.programs.insert(launch.name.clone(), child.id);
        });
        recorded.map(|()| child).map_err(|error| error.to_string())
    }
}

fn outcome(result: Result<(), String>) -> ControlResponse {
    result.map_or_else(ControlResponse::Failed, |()| ControlResponse::Done)
}

async fn read(stream: &mut UnixStream) -> Result<ControlRequest, String> {
    let mut line = String::new();
    let read = BufReader::new(stream).read_line(&mut line).await;
    read.map_err(|error| format!("read the request: {error}"))?;
    serde_json::from_str(&line).map_err(|error| format!("request {line:?}: {error}"))
}
