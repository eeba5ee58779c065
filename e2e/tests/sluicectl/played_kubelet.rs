//! A kubelet that serves logs for nodes that kwok simulates: one line per request, with what was asked for.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
};
use e2e::installation::TIMEOUT;
use futures::{StreamExt, stream};
use harness::Cluster;
use k8s_openapi::jiff::Timestamp;
use runtime::{
    Stop, certs,
    server::Server,
    tls::{self, CertificateSlot, ServerTls},
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    time::timeout,
};

/// A kubelet that serves logs. Dropping it ends it.
pub(crate) struct PlayedKubelet {
    port: u16,
    state: Arc<LogState>,
    stop: Stop,
}

#[derive(Default)]
struct LogState {
    go: Notify,
    /// Logs that are followed.
    open: watch::Sender<usize>,
}

/// A log that is followed.
struct OpenLog(Arc<LogState>);

impl Drop for OpenLog {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

impl Drop for PlayedKubelet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl PlayedKubelet {
    pub(crate) async fn start() -> Result<Self> {
        let now = Timestamp::now();
        let authority = certs::make_authority("kubelet", now)?;
        let pair = certs::issue(&authority, &["localhost".to_owned()], now)?;
        let slot = CertificateSlot::new();
        slot.load(&pair.certificate, &pair.key)?;
        let config = tls::server_config(slot, &ServerTls::default())?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (state, stop) = (Arc::<LogState>::default(), Stop::new());
        let of_log = state.clone();
        let router = Router::new().fallback(move |request: Request| log(request, of_log.clone()));
        tokio::spawn(Server::tls(router, config).run(listener, stop.clone()));
        Ok(Self { port, state, stop })
    }

    /// Makes the API server look for logs of a node here. An API server does not verify the certificates of kubelets by default.
    pub(crate) async fn serve(&self, cluster: &Cluster, node: &str) -> Result<()> {
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }});
        let patch = status.to_string();
        let arguments =
            ["patch", "node", node, "--subresource=status", "--type=merge", "-p", &patch];
        cluster.kubectl(&arguments).await?;
        Ok(())
    }

    /// Lets a log that is followed go on to its end.
    pub(crate) fn go_on(&self) {
        self.state.go.notify_one();
    }

    /// Waits until so many logs are followed.
    pub(crate) async fn until_followed(&self, count: usize) -> Result<()> {
        let mut open = self.state.open.subscribe();
        let wanted = timeout(TIMEOUT, open.wait_for(|open| *open == count)).await;
        wanted.with_context(|| format!("not {count} logs are followed"))??;
        Ok(())
    }
}

/// `/containerLogs/{namespace}/{pod}/{container}`.
async fn log(request: Request, state: Arc<LogState>) -> Body {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let path = request.uri().path().trim_start_matches("/containerLogs/").to_owned();
    let line = |text: String| Ok::<_, std::io::Error>(Bytes::from(text));
    let first = stream::iter([line(format!("{path}?{query}\n"))]);
    if !query.contains("follow=true") {
        return Body::from_stream(first);
    }
    state.open.send_modify(|open| *open += 1);
    let open = OpenLog(state);
    let last = stream::once(async move {
        open.0.go.notified().await;
        line("the end\n".to_owned())
    });
    Body::from_stream(first.chain(last))
}
