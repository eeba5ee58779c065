//! An HTTP server: a [`Router`] behind TLS or plain TCP, with a connection limit and graceful shutdown.
//!
//! A slow handshake or slow headers block only their own task. After the stop token is cancelled no connection is accepted;
//! requests in flight are completed within the drain time. A connection that a handler upgrades belongs to the handler, which
//! ends it at the stop.

mod last_answer;
mod preface_timeout_stream;
mod write_timeout_stream;

use std::{sync::Arc, time::Duration};

use axum::{Extension, Router, middleware};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use self::{
    last_answer::LastAnswer, preface_timeout_stream::PrefaceTimeoutStream,
    write_timeout_stream::WriteTimeoutStream,
};
use crate::{Stop, client_certificate::PeerCertificates};

/// Limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Maximum number of connections; further ones wait to be accepted.
    pub connections: usize,
    /// Timeout of a TLS handshake, and of the first bytes after it.
    pub handshake: Duration,
    /// Time for which an HTTP/1 connection is kept without the headers of a request.
    pub idle: Duration,
    /// Time for which a client may take nothing of an answer.
    pub stalled: Duration,
    /// Time for requests in flight after the stop.
    pub drain: Duration,
    /// Pause after a failed accept, for example without free file descriptors.
    pub accept_pause: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            handshake: Duration::from_secs(10),
            // Longer than the 90 s of Go's clients: of two ends that close an idle connection, the client's loses no request.
            idle: Duration::from_secs(100),
            // Longer than the time after which an answer of another server is cut off for the same reason.
            stalled: Duration::from_secs(60),
            drain: Duration::from_secs(20),
            accept_pause: Duration::from_millis(100),
        }
    }
}

/// The part of all connections, as a divisor, that is kept free: while fewer are free, answers end their connections.
const KEPT_FREE: usize = 4;

/// A server, to be started with [`run`](Self::run).
pub struct Server {
    router: Router,
    tls: Option<Arc<ServerConfig>>,
    limits: ServerLimits,
    leaving: Option<Stop>,
}

impl Server {
    /// Serves plain HTTP.
    #[must_use]
    pub fn plain(router: Router) -> Self {
        Self { router, tls: None, limits: ServerLimits::default(), leaving: None }
    }

    /// Serves HTTPS.
    #[must_use]
    pub fn tls(router: Router, config: Arc<ServerConfig>) -> Self {
        Self { tls: Some(config), ..Self::plain(router) }
    }

    /// Ends HTTP/1 connections with their next answer after `leaving` is cancelled, some time before the stop. Clients then
    /// connect again, to a server that stays if there is one. The stop finds only connections that were idle since then.
    #[must_use]
    pub fn leaving_at(self, leaving: Stop) -> Self {
        Self { leaving: Some(leaving), ..self }
    }

    /// Replaces the default limits.
    #[must_use]
    pub fn with_limits(self, limits: ServerLimits) -> Self {
        Self { limits, ..self }
    }

    /// Accepts until `stop`, then drains.
    pub async fn run(self, listener: TcpListener, stop: Stop) {
        let permits = Arc::new(Semaphore::new(self.limits.connections));
        let connections = GracefulShutdown::new();
        let router = self.layered_router(&permits);
        while let Some((stream, permit)) = self.next(&listener, &permits, &stop).await {
            let connection = ServerConnection {
                service: router.clone(),
                tls: self.tls.clone().map(TlsAcceptor::from),
                limits: self.limits,
                _permit: permit,
            };
            // Without Nagle's algorithm, so that small responses are sent at once.
            let _ = stream.set_nodelay(true);
            tokio::spawn(connection.serve(stream, connections.watcher(), stop.clone()));
        }
        // Closed before the drain, so that new clients are refused and do not wait for its end.
        drop(listener);
        if timeout(self.limits.drain, connections.shutdown()).await.is_err() {
            tracing::warn!("requests in flight were cut off");
        }
    }

    fn layered_router(&self, places: &Arc<Semaphore>) -> Router {
        let last = LastAnswer {
            leaving: self.leaving.clone(),
            places: places.clone(),
            kept_free: self.limits.connections / KEPT_FREE,
        };
        let close = last_answer::close_after_answer;
        self.router.clone().layer(middleware::from_fn_with_state(last, close))
    }

    /// The next connection and its permit; none after the stop.
    async fn next(
        &self,
        listener: &TcpListener,
        permits: &Arc<Semaphore>,
        stop: &Stop,
    ) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let accept = async {
            // The permit first: connections beyond the limit stay in the queue of the kernel.
            let permit = permits.clone().acquire_owned().await.ok()?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => return Some((stream, permit)),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(self.limits.accept_pause).await;
                    }
                }
            }
        };
        tokio::select! {
            // The stop first: no connection is accepted after it, even if one is waiting.
            biased;
            () = stop.cancelled() => None,
            accepted = accept => accepted,
        }
    }
}

struct ServerConnection {
    service: Router,
    tls: Option<TlsAcceptor>,
    limits: ServerLimits,
    _permit: OwnedSemaphorePermit,
}

type Watcher = hyper_util::server::graceful::Watcher;

impl ServerConnection {
    async fn serve<S>(mut self, stream: S, watcher: Watcher, stop: Stop)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = WriteTimeoutStream::new(stream, self.limits.stalled);
        let Some(acceptor) = self.tls.take() else {
            return self.serve_http(stream, watcher).await;
        };
        let handshake = timeout(self.limits.handshake, acceptor.accept(stream));
        let accepted = tokio::select! {
            // No request is in flight before the handshake, so the drain does not wait for it.
            () = stop.cancelled() => return,
            accepted = handshake => accepted,
        };
        match accepted {
            Ok(Ok(stream)) => {
                let (_, session) = stream.get_ref();
                // Most servers ask for no certificate, and their requests get no extension.
                if let Some(peer) = PeerCertificates::of(session.peer_certificates()) {
                    self.service = self.service.layer(Extension(peer));
                }
                self.serve_http(stream, watcher).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    }

    async fn serve_http<S>(self, stream: S, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(self.limits.idle);
        // A client that disappeared does not answer the ping, and its permit becomes free.
        builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
        let service = TowerToHyperService::new(self.service);
        let stream = TokioIo::new(PrefaceTimeoutStream::new(stream, self.limits.handshake));
        let connection = builder.serve_connection_with_upgrades(stream, service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "connection ended");
        }
    }
}

#[cfg(test)]
mod tests;
