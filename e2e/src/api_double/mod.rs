//! API servers in memory: many clusters behind one listener, each under a path of its own, over TLS and HTTP/2.
//!
//! For measurements of a manager with more workers than a machine has room for control planes. A [`DoubleCluster`] keeps
//! versions, uids, finalizers and preconditions as an API server does, and has no schemas, defaults, webhooks, rights or garbage
//! collection: its clients send whole objects. Not played are: names and namespaces that a watch selects, and the
//! `DELETED` of an object that leaves a selection by labels; bookmarks; watches of metadata alone, which get whole objects; creates by an
//! apply; and subresources, which are written as parts of their object.
//!
//! | module | concept |
//! |---|---|
//! | `cluster` | the objects of one cluster, and what clients in this process do with them |
//! | `resource` | the objects of one resource, and the changes that a watch repeats |
//! | `object` | an object as text, and how a write changes it |
//! | `request` | what a request asks for |
//! | `answer` | answers as Kubernetes words them |
//! | `watch` | the events of one watch |

mod answer;
mod cluster;
mod object;
mod request;
mod resource;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
};

use anyhow::{Context, Result};
use axum::{
    Router,
    extract::{Request, State},
    response::Response,
};
use kube::config::Kubeconfig;
use lab::{certs::Certs, kubeconfig};
use runtime::{
    Stop,
    server::{Server, ServerLimits},
    tls::{CertificateSlot, ServerTls, server_config},
};
use tokio::net::TcpListener;

pub use cluster::{DoubleChange, DoubleCluster, DoubleFollow};
pub use object::DoubleRefusal;
pub(crate) use object::now;

/// Connections of all clients: a manager has three to each cluster.
const CONNECTIONS: usize = 16_384;

/// The clusters by name.
type DoubleClusters = Arc<RwLock<BTreeMap<String, Arc<DoubleCluster>>>>;

/// See the module. The server ends with it.
pub struct ApiDouble {
    address: SocketAddr,
    certs: Certs,
    clusters: DoubleClusters,
    stop: Stop,
}

impl ApiDouble {
    /// Starts the server, without clusters.
    ///
    /// # Errors
    /// If certificates cannot be made, or no port is free.
    pub async fn start() -> Result<Self> {
        let certs = Certs::make()?;
        let slot = CertificateSlot::new();
        slot.load(&certs.server.certificate, &certs.server.key)?;
        let tls = server_config(slot, &ServerTls::default())?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a port of the double")?;
        let address = listener.local_addr()?;
        let (clusters, stop) = (DoubleClusters::default(), Stop::new());
        let router = Router::new().fallback(handle).with_state(Arc::clone(&clusters));
        let limits = ServerLimits { connections: CONNECTIONS, ..ServerLimits::default() };
        let server = Server::tls(router, tls).with_limits(limits);
        tokio::spawn(server.run(listener, stop.clone()));
        Ok(Self { address, certs, clusters, stop })
    }

    /// Adds a cluster that serves these resources; every resource if there are none.
    #[must_use]
    pub fn add(&self, name: &str, served: &[&str]) -> Arc<DoubleCluster> {
        let cluster = Arc::new(DoubleCluster::new(name, served));
        let mut clusters = self.clusters.write().unwrap_or_else(PoisonError::into_inner);
        clusters.insert(name.to_owned(), Arc::clone(&cluster));
        cluster
    }

    /// An administrator's kubeconfig of a cluster.
    #[must_use]
    pub fn kubeconfig(&self, name: &str) -> Kubeconfig {
        kubeconfig::admin(name, &format!("https://{}/clusters/{name}", self.address), &self.certs)
    }
}

impl Drop for ApiDouble {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Answers a request to the cluster that its path names.
async fn handle(State(clusters): State<DoubleClusters>, request: Request) -> Response {
    let path = request.uri().path().strip_prefix("/clusters/").unwrap_or_default();
    let (name, path) = path.split_once('/').unwrap_or((path, ""));
    let cluster = clusters.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    match cluster {
        Some(cluster) => {
            let path = path.to_owned();
            request::serve(&cluster, &path, request).await
        }
        None => answer::refused(&DoubleRefusal::NotServed, ""),
    }
}
