//! An HTTP proxy to Services of worker clusters: what `--ray-head-proxy` of an agent names, where the agent runs beside the lab
//! and Ray heads in its pods.
//!
//! A request names `SERVICE.NAMESPACE.svc…:PORT` and goes through the API server of the first worker with such a Service, which
//! connects to a pod of it. The server has a thread of its own: tests that share it have a runtime each.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Service;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use lab::ClusterState;
use lab::kubeconfig::{self, KubeconfigFailure};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Headers that reach a Service.
const HEADERS: [HeaderName; 2] = [CONTENT_TYPE, HeaderName::from_static("x-ray-authorization")];

/// Why a request did not reach a Service.
#[derive(Debug, thiserror::Error)]
enum ServiceProxyError {
    #[error("{0:?} is no SERVICE.NAMESPACE.svc:PORT")]
    Malformed(String),
    #[error("no worker has the Service {namespace}/{name}")]
    Absent { namespace: String, name: String },
    #[error("read the request: {0}")]
    Read(#[from] hyper::Error),
    #[error("make the request: {0}")]
    Make(#[from] hyper::http::Error),
    #[error("ask the API server: {0}")]
    Ask(#[from] kube::Error),
}

/// An HTTP proxy to Services of worker clusters. The server ends with it.
pub struct ServiceProxy {
    address: SocketAddr,
    _end: oneshot::Sender<()>,
}

impl ServiceProxy {
    /// Starts the server for Services of these clusters.
    ///
    /// # Errors
    /// If there is no port, or no client of a cluster can be made.
    pub fn start(workers: &[ClusterState]) -> Result<Self, KubeconfigFailure> {
        let unread =
            |error: io::Error| KubeconfigFailure::Client(kube::Error::Service(error.into()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(unread)?;
        listener.set_nonblocking(true).map_err(unread)?;
        let address = listener.local_addr().map_err(unread)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(unread)?;
        let (end, ended) = oneshot::channel::<()>();
        let (made, result) = std::sync::mpsc::channel();
        let workers = workers.to_vec();
        thread::spawn(move || {
            runtime.block_on(async {
                // Clients belong to the runtime that they are made in.
                let clients = match clients(&workers).await {
                    Ok(clients) => clients,
                    Err(error) => return drop(made.send(Err(error))),
                };
                drop(made.send(Ok(())));
                tokio::select! {
                    // The sender is dropped, and never used.
                    _ = ended => {}
                    () = serve(listener, clients.into()) => {}
                }
            });
        });
        let no_thread = |error| unread(io::Error::other(error));
        result.recv().map_err(no_thread)??;
        Ok(Self { address, _end: end })
    }

    /// `host:port` of the proxy.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

async fn clients(workers: &[ClusterState]) -> Result<Vec<Client>, KubeconfigFailure> {
    let mut clients = Vec::new();
    for worker in workers {
        clients.push(kubeconfig::client(Kubeconfig::read_from(worker.kubeconfig())?).await?);
    }
    Ok(clients)
}

async fn serve(listener: std::net::TcpListener, clients: Arc<[Client]>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let clients = Arc::clone(&clients);
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let clients = Arc::clone(&clients);
                async move { Ok::<_, Infallible>(answer(request, &clients).await) }
            });
            // A client that goes away is no failure of the proxy.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await);
        });
    }
}

async fn answer(request: Request<Incoming>, clients: &[Client]) -> Response<Full<Bytes>> {
    forward(request, clients).await.unwrap_or_else(|error| {
        let mut response = Response::new(Full::from(error.to_string()));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    })
}

async fn forward(
    request: Request<Incoming>,
    clients: &[Client],
) -> Result<Response<Full<Bytes>>, ServiceProxyError> {
    let (parts, body) = request.into_parts();
    let authority = parts.uri.authority().map(ToString::to_string).unwrap_or_default();
    let target = ServiceTarget::parse(&authority);
    let target = target.ok_or_else(|| ServiceProxyError::Malformed(authority.clone()))?;
    let client = target.client(clients).await?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut builder = Request::builder().method(parts.method).uri(target.path(path));
    for name in HEADERS {
        if let Some(value) = parts.headers.get(&name) {
            builder = builder.header(name, value);
        }
    }
    let body = body.collect().await?.to_bytes();
    let answer = client.send(builder.body(kube::client::Body::from(body.to_vec()))?).await?;
    let status = answer.status();
    let content = answer.into_body().collect().await?.to_bytes();
    let mut response = Response::new(Full::from(content));
    *response.status_mut() = status;
    Ok(response)
}

/// A port of a Service.
#[derive(Debug, PartialEq, Eq)]
struct ServiceTarget<'a> {
    name: &'a str,
    namespace: &'a str,
    port: u16,
}

impl<'a> ServiceTarget<'a> {
    fn parse(authority: &'a str) -> Option<Self> {
        let (host, port) = authority.split_once(':')?;
        let mut labels = host.split('.');
        let (name, namespace, kind) = (labels.next()?, labels.next()?, labels.next()?);
        let target = Self { name, namespace, port: port.parse().ok()? };
        (kind == "svc" && !name.is_empty()).then_some(target)
    }

    /// The client of the cluster that has the Service.
    async fn client(&self, clients: &[Client]) -> Result<Client, ServiceProxyError> {
        for client in clients {
            let services: Api<Service> = Api::namespaced(client.clone(), self.namespace);
            if services.get_opt(self.name).await?.is_some() {
                return Ok(client.clone());
            }
        }
        let (namespace, name) = (self.namespace.to_owned(), self.name.to_owned());
        Err(ServiceProxyError::Absent { namespace, name })
    }

    /// The way through the API server.
    fn path(&self, path: &str) -> String {
        let Self { name, namespace, port } = self;
        format!("/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_port_of_a_service() {
        let head = ServiceTarget::parse("c-head-svc.ns.svc.cluster.local:8265").unwrap();
        assert_eq!(head, ServiceTarget { name: "c-head-svc", namespace: "ns", port: 8265 });
        let expected = "/api/v1/namespaces/ns/services/c-head-svc:8265/proxy/api/jobs/?a=b";
        assert_eq!(head.path("/api/jobs/?a=b"), expected);
        for other in ["example.com:80", "a.b.pod:80", ".b.svc:80", "a.b.svc", "a.b.svc:x", ""] {
            assert_eq!(ServiceTarget::parse(other), None, "{other}");
        }
    }
}
