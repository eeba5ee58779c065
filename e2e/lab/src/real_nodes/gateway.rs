//! The process in the network namespace that all nodes of a lab are connected to.
//!
//! It forwards packets between the nodes, and connects their network with the host's, in both directions through unix sockets:
//! * Connections to `10.210.0.1:PORT`, where `PORT` is the port of a cluster's API server, go to that port of the host's loopback.
//! * The API servers reach kubelets and pods through it: it answers `CONNECT` on a socket that is named in their egress
//!   configuration. Loopback in such a request means the host's, where aggregated APIs of tests listen.
//!
//! It answers the DNS questions of pods as well ([`dns`]).

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::dns;
use super::links::{self, LinkError};
use super::node::GATEWAY;
use crate::state::{LabState, StateError};

/// The hidden subcommand of `sluice-lab`.
pub const SUBCOMMAND: &str = "gateway";

/// The name of the gateway among the programs of a lab.
pub const PROGRAM: &str = "gateway";

/// A request is one line and a few headers.
const REQUEST_AT_MOST: usize = 4096;

/// A node or pod that does not answer.
const DIAL: Duration = Duration::from_secs(10);

/// The gateway could not serve.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The state of the lab could not be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The network namespace could not be prepared.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A socket could not be opened.
    #[error("{operation} {at}: {source}")]
    Socket {
        /// What was tried.
        operation: &'static str,
        /// The address or path.
        at: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The socket that the API servers send `CONNECT` to.
pub fn egress_socket(lab: &Path) -> PathBuf {
    lab.join("egress.sock")
}

/// The socket behind which the supervisor connects to the host's loopback.
fn host_socket(lab: &Path) -> PathBuf {
    lab.join("host.sock")
}

/// Serves the lab in `directory` until it is killed. This process is alone in its network namespace.
///
/// # Errors
/// If a socket cannot be opened.
pub fn run(directory: &Path) -> Result<(), GatewayError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(socket("start the runtime of", "the gateway"))?;
    let lab = LabState::load(directory)?;
    links::prepare_gateway()?;
    LocalSet::new().block_on(&runtime, async {
        let at = (GATEWAY, dns::PORT);
        let names = UdpSocket::bind(at).await;
        let names = names.map_err(socket("listen at", format!("{GATEWAY}:{}", at.1)))?;
        for cluster in &lab.clusters {
            let at = (GATEWAY, cluster.api_port);
            let listener = TcpListener::bind(at).await;
            let listener = listener.map_err(socket("listen at", format!("{GATEWAY}:{}", at.1)))?;
            tokio::spawn(serve_api(listener, host_socket(directory), cluster.api_port));
        }
        let path = egress_socket(directory);
        let listener = UnixListener::bind(&path);
        let listener = listener.map_err(socket("listen at", path.display().to_string()))?;
        let host = host_socket(directory);
        tokio::join!(serve_egress(&listener, &host), dns::serve(names, &lab.clusters));
        Ok(())
    })
}

/// The host's side: connects each connection to the port of loopback that its first two bytes name.
///
/// # Errors
/// If the socket cannot be opened.
pub fn serve_host(lab: &Path) -> Result<(), GatewayError> {
    let path = host_socket(lab);
    let listener = UnixListener::bind(&path);
    let listener = listener.map_err(socket("listen at", path.display().to_string()))?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let port = stream.read_u16().await?;
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
                join(stream, server).await
            });
        }
    });
    Ok(())
}

async fn serve_api(listener: TcpListener, host: PathBuf, port: u16) {
    while let Ok((client, _)) = listener.accept().await {
        let host = host.clone();
        tokio::spawn(async move {
            let server = dial_host(&host, port).await?;
            join(client, server).await
        });
    }
}

async fn serve_egress(listener: &UnixListener, host: &Path) {
    while let Ok((client, _)) = listener.accept().await {
        let host = host.to_owned();
        tokio::spawn(async move { answer_connect(client, &host).await });
    }
}

/// Answers one `CONNECT` and joins the connections.
async fn answer_connect(mut client: UnixStream, host: &Path) -> std::io::Result<()> {
    let request = read_request(&mut client).await?;
    let Some((name, port)) = connect_target(&request) else {
        return client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    };
    const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
    if is_loopback(name) {
        let server = dial_host(host, port).await?;
        client.write_all(ESTABLISHED).await?;
        return join(client, server).await;
    }
    match timeout(DIAL, TcpStream::connect((name, port))).await {
        Ok(Ok(server)) => {
            client.write_all(ESTABLISHED).await?;
            join(client, server).await
        }
        Ok(Err(_)) => client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await,
        Err(_) => client.write_all(b"HTTP/1.1 504 Gateway Timeout\r\n\r\n").await,
    }
}

/// Reads a request up to its empty line and not further: what follows belongs to the tunnel.
async fn read_request(client: &mut UnixStream) -> std::io::Result<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if request.len() == REQUEST_AT_MOST {
            return Err(std::io::Error::other("the request is too long"));
        }
        request.push(client.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

/// The host and the port of a `CONNECT`.
fn connect_target(request: &str) -> Option<(&str, u16)> {
    let target = request.strip_prefix("CONNECT ")?.split(' ').next()?;
    let (host, port) = target.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host, port.parse().ok()?))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host == "::1" || host.starts_with("127.")
}

async fn dial_host(socket: &Path, port: u16) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_u16(port).await?;
    Ok(stream)
}

/// Copies in both directions until both have ended.
async fn join<A, B>(mut one: A, mut other: B) -> std::io::Result<()>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    copy_bidirectional(&mut one, &mut other).await.map(drop)
}

fn socket(
    operation: &'static str,
    at: impl Into<String>,
) -> impl FnOnce(std::io::Error) -> GatewayError {
    let at = at.into();
    move |source| GatewayError::Socket { operation, at, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_host_and_port() {
        let target = |line: &str| connect_target(line).map(|(host, port)| format!("{host} {port}"));
        let plain = "CONNECT 10.210.0.2:10250 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        assert_eq!(target(plain).as_deref(), Some("10.210.0.2 10250"));
        assert_eq!(target("CONNECT [::1]:443 HTTP/1.1\r\n\r\n").as_deref(), Some("::1 443"));
        for bad in ["GET / HTTP/1.1\r\n\r\n", "CONNECT host HTTP/1.1\r\n\r\n", ""] {
            assert_eq!(target(bad), None, "{bad:?}");
        }
        assert!(is_loopback("localhost") && is_loopback("127.0.0.1") && !is_loopback("10.0.0.1"));
    }
}
