use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use axum::{Router, extract::State, http::Version};
use futures::future::join_all;
use jiff::Timestamp;
use kube::Client;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Barrier,
    task::JoinHandle,
    time::timeout,
};

use super::*;
use crate::{
    Stop, certs,
    server::Server,
    tls::{self, CertificateSlot, ServerTls},
};

/// For a busy machine.
const WITHIN: Duration = Duration::from_secs(30);

/// Requests that are answered only when all of them have arrived.
const AT_ONCE: usize = 20;

/// A server that counts its connections, and answers once that many requests have come.
struct TestServer {
    address: SocketAddr,
    authority: certs::CertPair,
    /// Its own certificate, which the authority has issued.
    certificate: String,
    connections: Arc<AtomicUsize>,
    server: JoinHandle<()>,
    front: JoinHandle<()>,
}

async fn answer(State(all): State<Arc<Barrier>>, request: axum::extract::Request) -> String {
    all.wait().await;
    let version = if request.version() == Version::HTTP_2 { "h2" } else { "http/1.1" };
    format!("\"{version}\"")
}

impl TestServer {
    /// A server of these protocols that waits for [`AT_ONCE`] requests.
    async fn new(protocols: &[&str]) -> Self {
        Self::waiting_for(AT_ONCE, protocols).await
    }

    async fn waiting_for(at_once: usize, protocols: &[&str]) -> Self {
        let now = Timestamp::now();
        let authority = certs::make_authority("a server", now).expect("an authority");
        let pair = certs::issue(&authority, &["localhost".to_owned()], now).expect("a certificate");
        let slot = CertificateSlot::new();
        slot.load(&pair.certificate, &pair.key).expect("a pair");
        let mut config = tls::server_config(slot, &ServerTls::default()).expect("a configuration");
        Arc::make_mut(&mut config).alpn_protocols =
            protocols.iter().map(|one| one.as_bytes().to_vec()).collect();
        let router = Router::new().fallback(answer).with_state(Arc::new(Barrier::new(at_once)));
        let behind = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let target = behind.local_addr().expect("an address");
        let server = tokio::spawn(Server::tls(router, config).run(behind, Stop::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let front = tokio::spawn(forward(listener, target, Arc::clone(&connections)));
        let certificate = pair.certificate;
        Self { address, authority, certificate, connections, server, front }
    }

    fn client(&self) -> Client {
        self.client_trusting(&self.authority.certificate)
    }

    fn client_trusting(&self, root: &str) -> Client {
        let server = format!("https://localhost:{}", self.address.port());
        let mut config = Config::new(server.parse().expect("an address"));
        let root = CertificateDer::from_pem_slice(root.as_bytes());
        config.root_cert = Some(vec![root.expect("a certificate").to_vec()]);
        builder(&config).expect("a client").build()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.server.abort();
        self.front.abort();
    }
}

async fn forward(listener: TcpListener, target: SocketAddr, connections: Arc<AtomicUsize>) {
    while let Ok((mut from, _)) = listener.accept().await {
        connections.fetch_add(1, SeqCst);
        tokio::spawn(async move {
            let mut to = TcpStream::connect(target).await.expect("the server");
            // Ends with either side.
            let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
        });
    }
}

async fn ask(client: &Client, path: &str) -> String {
    text(client, Request::get(path).body(Vec::new()).expect("a request")).await
}

async fn text(client: &Client, request: Request<Vec<u8>>) -> String {
    let answer = timeout(WITHIN, client.request_text(request)).await.expect("in time");
    answer.expect("an answer")
}

/// Asks at once for as many as the server waits for. Returns the protocols.
async fn ask_all(client: &Client) -> Vec<String> {
    let paths = ["/api?watch=true", "/apis/coordination.k8s.io/v1/leases?", "/api?limit=1"];
    join_all((0..AT_ONCE).map(|at| ask(client, paths[at % paths.len()]))).await
}

#[tokio::test]
async fn requests_share_connections_by_what_they_are_for() {
    let server = TestServer::new(&["h2", "http/1.1"]).await;
    let client = server.client();
    let answers = ask_all(&client).await;
    assert!(answers.iter().all(|one| one == "\"h2\""), "{answers:?}");
    assert!(server.connections.load(SeqCst) >= 3, "watches, leases, others");
    // Requests that come together may dial together; then they use what was first.
    let dialled = server.connections.load(SeqCst);
    ask_all(&client).await;
    assert_eq!(server.connections.load(SeqCst), dialled, "no further connection");
}

/// The server takes 200 streams per connection.
#[tokio::test]
async fn more_watches_than_a_connection_has_streams_are_all_answered() {
    let n_watches = 250;
    let server = TestServer::waiting_for(n_watches, &["h2"]).await;
    let client = server.client();
    let answers = join_all((0..n_watches).map(|_| ask(&client, "/api?watch=true"))).await;
    assert!(answers.iter().all(|one| one == "\"h2\""), "{answers:?}");
}

#[tokio::test]
async fn a_server_without_http_2_gets_a_connection_per_request() {
    let server = TestServer::new(&["http/1.1"]).await;
    let answers = ask_all(&server.client()).await;
    assert!(answers.iter().all(|one| one == "\"http/1.1\""), "{answers:?}");
    assert_eq!(server.connections.load(SeqCst), AT_ONCE);
}

#[tokio::test]
async fn a_streamed_answer_has_a_connection_to_itself() {
    let server = TestServer::new(&["h2", "http/1.1"]).await;
    let client = server.client();
    let stream = || {
        let mut request = Request::get("/api?follow=true").body(Vec::new()).expect("a request");
        request.extensions_mut().insert(StreamedAnswer);
        text(&client, request)
    };
    let answers = join_all((0..AT_ONCE).map(|_| stream())).await;
    assert!(answers.iter().all(|one| one == "\"http/1.1\""), "{answers:?}");
    assert_eq!(server.connections.load(SeqCst), AT_ONCE);
    join_all((0..AT_ONCE).map(|_| stream())).await;
    assert_eq!(server.connections.load(SeqCst), 2 * AT_ONCE, "none is used again");
}

#[tokio::test]
async fn the_certificate_of_a_server_is_no_authority() {
    let server = TestServer::new(&["h2"]).await;
    let client = server.client_trusting(&server.certificate);
    let answer = client.apiserver_version().await;
    let error = crate::error_chain::describe(&answer.expect_err("it was issued by another"));
    assert!(error.ends_with("UnknownIssuer"), "{error}");
}

#[test]
fn a_proxy_is_an_error() {
    let mut config = Config::new("https://localhost".parse().expect("an address"));
    config.proxy_url = Some("http://localhost:3128".parse().expect("an address"));
    let error = builder(&config).err().expect("an error").to_string();
    assert!(error.contains("a proxy is not supported"), "{error}");
}
