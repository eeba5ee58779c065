//! The place of a Service: one address, and each connection goes to an endpoint that accepts it.
//!
//! TLS passes through. An endpoint that does not accept is skipped, as a Service skips a pod that is not ready.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A running service. Dropping it closes everything.
#[derive(Debug)]
pub struct PlayedService {
    endpoints: watch::Sender<Vec<SocketAddr>>,
    task: JoinHandle<()>,
}

impl PlayedService {
    /// Listens on this port of this machine. It has no endpoints yet.
    ///
    /// # Errors
    /// If the port is not free.
    pub async fn start(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let (endpoints, known) = watch::channel(Vec::new());
        Ok(Self { endpoints, task: tokio::spawn(serve(listener, known)) })
    }

    /// Sends new connections to these endpoints in turn. Open connections stay.
    pub fn set(&self, endpoints: Vec<SocketAddr>) {
        self.endpoints.send_replace(endpoints);
    }
}

impl Drop for PlayedService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, endpoints: watch::Receiver<Vec<SocketAddr>>) {
    let turn = Arc::new(AtomicUsize::new(0));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                let all = endpoints.borrow().clone();
                connections.spawn(forward(client, all, turn.fetch_add(1, Ordering::Relaxed)));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Forwards a connection to the first endpoint that accepts, beginning with this one. Without any, the client's connection ends.
async fn forward(mut client: TcpStream, endpoints: Vec<SocketAddr>, first: usize) {
    let from = first % endpoints.len().max(1);
    let (before, after) = endpoints.split_at(from.min(endpoints.len()));
    for endpoint in after.iter().chain(before) {
        if let Ok(mut server) = TcpStream::connect(endpoint).await {
            // A connection that either side resets is over, which the other side learns from its end.
            let _ = copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// An endpoint that answers each connection with its number.
    async fn endpoint(number: u8) -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let answers = async move {
            while let Ok((mut client, _)) = listener.accept().await {
                client.write_all(&[number]).await.expect("written");
            }
        };
        (address, tokio::spawn(answers))
    }

    #[tokio::test]
    async fn an_endpoint_that_does_not_accept_is_skipped() {
        let port = crate::free_port().expect("a port");
        let service = PlayedService::start(port).await.expect("it listens");
        let ask = || async {
            let mut client =
                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("accepted");
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.expect("read");
            answer
        };
        assert!(ask().await.is_empty(), "no endpoints");
        let ((one, first), (two, _second)) = (endpoint(1).await, endpoint(2).await);
        service.set(vec![one, two]);
        let mut answers = vec![ask().await, ask().await];
        answers.sort();
        assert_eq!(answers, [[1], [2]], "in turn");
        first.abort();
        let _ = first.await;
        assert_eq!([ask().await, ask().await], [[2], [2]]);
    }
}
