//! How a client reaches its API server: HTTP/2 where the server speaks it, over three connections, and more for many watches.
//!
//! kube's own connector speaks HTTP/1.1 only, so that each watch, and each write beside another, has a connection with a TLS
//! handshake and buffers of its own. Here watches share one connection, or as many as they need, requests for leases a second
//! one, and all others a third one: a list or a burst of events does not hold up the answers to writes, and nothing holds up a
//! lease, which decides in time about what runs. A server, or a proxy in front of it, that speaks HTTP/1.1 only is reached as by
//! kube.
//!
//! A [`StreamedAnswer`] has a connection to itself, over HTTP/1.1: a reader that takes nothing would fill the window of a connection that
//! others share, and the connection ends with the answer.
//!
//! An idle connection is pinged. A peer that is gone without a word is noticed after [`PING_INTERVAL`] and [`PING_TIMEOUT`] at the
//! latest; then every request on the connection fails. A proxy that drops idle connections sees traffic.

mod request_class;
mod watch_connections;

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ClientBuilder, ConfigExt},
};
use tower::{
    BoxError, Service, ServiceBuilder,
    util::{BoxCloneSyncService, MapErr},
};

use self::watch_connections::{WATCHES_PER_CONNECTION, WatchConnections};
pub use self::{
    request_class::{StreamedAnswer, is_watch, watch_period},
    watch_connections::ServerBody,
};
use crate::jitter;

/// The time without traffic after which a connection is pinged; up to a quarter less, so that not all are pinged together.
pub const PING_INTERVAL: Duration = Duration::from_secs(30);

/// The time that the answer to a ping may take.
pub const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Part of the path of a request for leases. The address of a server may have a path before it.
const LEASES: &str = "/apis/coordination.k8s.io/";

/// Requests to one server, with its address and credentials added.
pub type ServerRequests = BoxCloneSyncService<Request<Body>, Response<ServerBody>, BoxError>;

/// A client builder for this configuration. The client never retries a request, also if the configuration asks for it.
///
/// # Errors
/// If certificates or credentials of the configuration are invalid, or it names a proxy.
pub fn builder(config: &Config) -> kube::Result<ClientBuilder<ServerRequests>> {
    if config.proxy_url.is_some() {
        return Err(invalid("a proxy is not supported".to_owned()));
    }
    let shared = connector(config, true)?;
    let connect = move || connections().build(shared.clone());
    let mut own = connections();
    // A connection is not used again after its answer.
    own.pool_max_idle_per_host(0);
    let transport = Transport {
        leases: connect(),
        requests: connect(),
        watches: WatchConnections::new(WATCHES_PER_CONNECTION, connect),
        streams: own.build(connector(config, false)?),
    };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(MapErr::new(transport, BoxError::from));
    let namespace = config.default_namespace.clone();
    Ok(ClientBuilder::new(BoxCloneSyncService::new(service), namespace))
}

type ServerConnector = TimeoutConnector<HttpsConnector<HttpConnector>>;

type ServerConnections = Client<ServerConnector, Body>;

/// The connections of a client to its API server, by use.
#[derive(Clone)]
struct Transport {
    watches: WatchConnections,
    leases: ServerConnections,
    requests: ServerConnections,
    streams: ServerConnections,
}

impl Service<Request<Body>> for Transport {
    type Response = Response<ServerBody>;
    type Error = legacy::Error;
    type Future = BoxFuture<'static, Result<Self::Response, legacy::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (uri, is_stream) =
            (request.uri(), request.extensions().get::<StreamedAnswer>().is_some());
        if !is_stream && uri.query().is_some_and(is_watch) {
            return self.watches.request(request);
        }
        let connections = match uri.path() {
            _ if is_stream => &self.streams,
            path if path.contains(LEASES) => &self.leases,
            _ => &self.requests,
        };
        let answer = connections.request(request);
        Box::pin(async move { Ok(answer.await?.map(ServerBody::uncounted)) })
    }
}

/// One connection to an HTTP/2 server; to another server as many as there are requests at the same time.
fn connections() -> legacy::Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
    builder.http2_keep_alive_interval(jitter::shortened(PING_INTERVAL));
    builder.http2_keep_alive_timeout(PING_TIMEOUT);
    builder.http2_keep_alive_while_idle(true);
    builder
}

/// Connects to the server, with HTTP/1.1 only or with the newest version that it speaks.
fn connector(config: &Config, http2: bool) -> kube::Result<ServerConnector> {
    let mut connector = TimeoutConnector::new(https(config, http2)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    Ok(connector)
}

fn https(config: &Config, http2: bool) -> kube::Result<HttpsConnector<HttpConnector>> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let unusable = |_| invalid(format!("{name:?} is no server name for TLS"));
        let name = name.clone().try_into().map_err(unusable)?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(if http2 {
        builder.enable_all_versions().wrap_connector(tcp)
    } else {
        builder.enable_http1().wrap_connector(tcp)
    })
}

fn invalid(problem: String) -> kube::Error {
    kube::Error::Service(problem.into())
}

#[cfg(test)]
mod tests;
