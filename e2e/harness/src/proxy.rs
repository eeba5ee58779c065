//! A TCP proxy with faults between a client and an API server.
//!
//! TLS passes through: the certificate of the API server is valid for 127.0.0.1 on any port, so a kubeconfig with the proxy's
//! address works. Faults act on bytes and connections, like those of a network.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::config::Kubeconfig;
use lab::{kubeconfig, ports};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::cluster::{Cluster, ClusterError};

/// How much is read and passed on at once.
const CHUNK: usize = 16 * 1024;

/// The fault of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Passes everything on.
    #[default]
    None,
    /// Passes everything on, each chunk so much later.
    Delay(Duration),
    /// Accepts connections and bytes, and forwards nothing until the fault ends.
    Hang,
    /// Forwards what clients send, and none of the answers until the fault ends: the link is half open.
    HangAnswers,
    /// Resets open connections and refuses new ones.
    Refuse,
}

impl Fault {
    /// Whether it holds requests back.
    fn holds_requests(self) -> bool {
        self == Self::Hang
    }

    /// Whether it holds answers back.
    fn holds_answers(self) -> bool {
        matches!(self, Self::Hang | Self::HangAnswers)
    }
}

/// Why a proxy could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// It got no port.
    #[error("start the proxy of {cluster}: {source}")]
    Listen {
        /// The cluster behind it.
        cluster: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The cluster's kubeconfig could not be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// No client could be made.
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::KubeconfigFailure),
}

/// A running proxy. Dropping it closes everything.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    kubeconfig: Kubeconfig,
    control: watch::Sender<ProxyControl>,
    passed: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

/// The fault, and the number of cuts: a connection ends when the number differs from that at its start.
#[derive(Debug, Clone, Copy, Default)]
struct ProxyControl {
    fault: Fault,
    cuts: u64,
}

impl FaultProxy {
    /// Stands in front of the cluster's API server.
    pub async fn start(cluster: &Cluster) -> Result<Self, ProxyError> {
        let listen = |source| ProxyError::Listen { cluster: cluster.name().to_owned(), source };
        let port = ports::one().map_err(|error| listen(std::io::Error::other(error)))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, cluster.state().api_port));
        let (control, orders) = watch::channel(ProxyControl::default());
        let passed = Arc::new(AtomicU64::new(0));
        let kubeconfig =
            kubeconfig::at_server(cluster.kubeconfig()?, &format!("https://{address}"));
        let server = ProxyServer { address, upstream, orders, passed: Arc::clone(&passed) };
        let task = tokio::spawn(server.run(listener));
        Ok(Self { address, kubeconfig, control, passed, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The administrator's kubeconfig with the proxy's address.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    /// A client that goes through the proxy.
    pub async fn client(&self) -> Result<kube::Client, ProxyError> {
        Ok(kubeconfig::client(self.kubeconfig.clone()).await?)
    }

    /// Does this from now on, to open connections too.
    pub fn set(&self, fault: Fault) {
        self.control.send_modify(|control| control.fault = fault);
    }

    /// Ends all open connections at once; new ones are served as before.
    pub fn cut(&self) {
        self.control.send_modify(|control| control.cuts += 1);
    }

    /// Bytes passed on so far, both ways.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct ProxyServer {
    address: SocketAddr,
    upstream: SocketAddr,
    orders: watch::Receiver<ProxyControl>,
    passed: Arc<AtomicU64>,
}

impl ProxyServer {
    /// Serves, or refuses. The kernel refuses connections when the listener is closed.
    async fn run(mut self, first: TcpListener) {
        let mut listener = Some(first);
        let mut connections = JoinSet::new();
        loop {
            match listener.take() {
                Some(listener) => self.serve(&listener, &mut connections).await,
                None => listener = TcpListener::bind(self.address).await.ok(),
            }
            if self.refusing() {
                connections.shutdown().await;
                let ended = self.orders.wait_for(|control| control.fault != Fault::Refuse).await;
                if ended.is_err() {
                    return; // The proxy was dropped.
                }
            }
        }
    }

    async fn serve(&mut self, listener: &TcpListener, connections: &mut JoinSet<()>) {
        let mut orders = self.orders.clone();
        while !self.refusing() {
            tokio::select! {
                accepted = listener.accept() => {
                    if let Ok((client, _)) = accepted {
                        connections.spawn(self.connection(client));
                    }
                }
                _ = orders.wait_for(|control| control.fault == Fault::Refuse) => return,
                Some(_) = connections.join_next() => {}
            }
        }
    }

    fn refusing(&self) -> bool {
        self.orders.borrow().fault == Fault::Refuse
    }

    fn connection(&self, client: TcpStream) -> impl Future<Output = ()> + Send + use<> {
        let upstream = self.upstream;
        let cuts = self.orders.borrow().cuts;
        let mut orders = self.orders.clone();
        let (there, back) = (self.orders.clone(), self.orders.clone());
        let passed = (Arc::clone(&self.passed), Arc::clone(&self.passed));
        async move {
            // An API server that is down closes the client's connection, as a network's last hop would.
            let Ok(server) = TcpStream::connect(upstream).await else {
                return;
            };
            let (client_reads, client_writes) = client.into_split();
            let (server_reads, server_writes) = server.into_split();
            tokio::select! {
                _ = async { tokio::join!(
                    pass(client_reads, server_writes, (there, Fault::holds_requests), passed.0),
                    pass(server_reads, client_writes, (back, Fault::holds_answers), passed.1),
                ) } => {}
                _ = orders.wait_for(|control| control.cuts != cuts) => {}
            }
        }
    }
}

/// Forwards bytes in one direction until one side closes.
async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    (mut orders, holds): (watch::Receiver<ProxyControl>, fn(Fault) -> bool),
    passed: Arc<AtomicU64>,
) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        let fault = orders.borrow().fault;
        if let Fault::Delay(delay) = fault {
            tokio::time::sleep(delay).await;
        }
        if orders.wait_for(|control| !holds(control.fault)).await.is_err() {
            return;
        }
        if to.write_all(&chunk[..read]).await.is_err() {
            return;
        }
        passed.fetch_add(read as u64, Ordering::Relaxed);
    }
}
