//! The supervisor's side of `control.sock`.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::{Supervisor, boot};
use crate::component::Component;
use crate::control::{ControlRequest, ControlResponse};

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
                    let answer = match self.restart(&cluster, component, &extra).await {
                        Ok(()) => ControlResponse::Done,
                        Err(reason) => ControlResponse::Failed(reason),
                    };
                    connection.answer(&answer).await;
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
}

async fn read(stream: &mut UnixStream) -> Result<ControlRequest, String> {
    let mut line = String::new();
    let read = BufReader::new(stream).read_line(&mut line).await;
    read.map_err(|error| format!("read the request: {error}"))?;
    serde_json::from_str(&line).map_err(|error| format!("request {line:?}: {error}"))
}
