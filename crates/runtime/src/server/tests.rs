use std::{net::SocketAddr, sync::Arc};

use axum::routing::get;
use http_body_util::{BodyExt, Empty};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    sync::Notify,
    task::JoinHandle,
    time::sleep,
};
use tokio_rustls::TlsConnector;

use super::*;
use crate::{
    certs::{self, CertPair},
    tls::{self, CertificateSlot, ServerTls},
};

type Sender = hyper::client::conn::http1::SendRequest<Empty<hyper::body::Bytes>>;

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

fn pair(authority: &CertPair) -> CertPair {
    let now = jiff::Timestamp::now();
    certs::issue(authority, &["127.0.0.1".to_owned()], now).expect("a certificate")
}

fn authority() -> CertPair {
    certs::make_authority("ca", jiff::Timestamp::now()).expect("a CA")
}

async fn connect(address: SocketAddr, authority: &CertPair) -> std::io::Result<Sender> {
    connect_as(address, authority, None).await
}

/// Connects with a certificate of the client.
async fn connect_as(
    address: SocketAddr,
    authority: &CertPair,
    client: Option<&CertPair>,
) -> std::io::Result<Sender> {
    let name = ServerName::from(address.ip());
    let stream = TcpStream::connect(address).await?;
    let stream = connector(authority, client).connect(name, stream).await?;
    Ok(handshake(stream).await)
}

/// A client that trusts `authority`, and has the certificate `client`.
fn connector(authority: &CertPair, client: Option<&CertPair>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(authority.certificate.as_bytes());
    roots.add(certificate.expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(pair) => {
            let chain = CertificateDer::from_pem_slice(pair.certificate.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
            let chain = vec![chain.expect("a certificate")];
            config.with_client_auth_cert(chain, key).expect("a pair")
        }
    };
    TlsConnector::from(Arc::new(config))
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S) -> Sender {
    let io = TokioIo::new(stream);
    let (sender, connection) =
        hyper::client::conn::http1::handshake(io).await.expect("a connection");
    tokio::spawn(connection);
    sender
}

async fn body(sender: &mut Sender) -> String {
    let request = http::Request::get("/").header("host", "x").body(Empty::new());
    let response = sender.send_request(request.expect("a request")).await.expect("a response");
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

#[tokio::test]
async fn new_connections_use_a_replaced_certificate() {
    let (slot, first, second) = (CertificateSlot::new(), authority(), authority());
    let config = tls::server_config(slot.clone(), &ServerTls::default()).expect("a configuration");
    let (listener, address) = listen().await;
    let stop = Stop::new();
    let server = tokio::spawn(Server::tls(hello(), config).run(listener, stop.clone()));

    assert!(connect(address, &first).await.is_err(), "nothing is loaded");
    let served = pair(&first);
    slot.load(&served.certificate, &served.key).expect("loaded");
    let mut old = connect(address, &first).await.expect("a connection");
    assert_eq!(body(&mut old).await, "hello");

    let served = pair(&second);
    slot.load(&served.certificate, &served.key).expect("loaded");
    assert!(connect(address, &first).await.is_err(), "the first CA is not trusted any more");
    let mut new = connect(address, &second).await.expect("a connection");
    assert_eq!(body(&mut new).await, "hello");
    assert_eq!(body(&mut old).await, "hello");

    stop.cancel();
    server.await.expect("stopped");
}

#[tokio::test]
async fn requests_carry_the_certificate_of_their_client() {
    let (slot, ca, client) = (CertificateSlot::new(), authority(), authority());
    let served = pair(&ca);
    slot.load(&served.certificate, &served.key).expect("loaded");
    let config = tls::server_config_with_clients(slot, &ServerTls::default());
    let (listener, address) = listen().await;
    let stop = Stop::new();
    let handler = |peer: Option<Extension<PeerCertificates>>| async move {
        if peer.is_some() { "a certificate" } else { "none" }
    };
    let router = Router::new().fallback(handler);
    let server = Server::tls(router, config.expect("a configuration"));
    let server = tokio::spawn(server.run(listener, stop.clone()));
    for (client, expected) in [(Some(&client), "a certificate"), (None, "none")] {
        let mut sender = connect_as(address, &ca, client).await.expect("a connection");
        assert_eq!(body(&mut sender).await, expected);
    }
    stop.cancel();
    server.await.expect("stopped");
}

/// A server with one request that notifies its start and waits for permission to end.
async fn slow() -> (SocketAddr, Arc<Notify>, Arc<Notify>, Stop, JoinHandle<()>) {
    let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (b, e) = (begun.clone(), end.clone());
    let handler = move || async move {
        b.notify_one();
        e.notified().await;
        "done"
    };
    let (listener, address) = listen().await;
    let stop = Stop::new();
    let server = Server::plain(Router::new().route("/", get(handler)));
    let task = tokio::spawn(server.run(listener, stop.clone()));
    (address, begun, end, stop, task)
}

#[tokio::test]
async fn after_the_stop_requests_in_flight_are_completed_and_no_more_accepted() {
    let (address, begun, end, stop, task) = slow().await;
    let mut sender = handshake(TcpStream::connect(address).await.expect("connected")).await;
    let answer = tokio::spawn(async move { body(&mut sender).await });
    begun.notified().await;
    stop.cancel();
    // The listener is closed once a connection is refused; until then the kernel may still queue one.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    end.notify_one();
    assert_eq!(answer.await.expect("an answer"), "done");
    task.await.expect("stopped");
}

#[tokio::test]
async fn the_drain_time_is_limited() {
    let (listener, address) = listen().await;
    let begun = Arc::new(Notify::new());
    let b = begun.clone();
    let handler = move || async move {
        b.notify_one();
        std::future::pending::<&str>().await
    };
    let stop = Stop::new();
    let limits = ServerLimits { drain: Duration::ZERO, ..ServerLimits::default() };
    let server = Server::plain(Router::new().route("/", get(handler))).with_limits(limits);
    let task = tokio::spawn(server.run(listener, stop.clone()));
    let mut sender = handshake(TcpStream::connect(address).await.expect("connected")).await;
    let request = http::Request::get("/").header("host", "x").body(Empty::new());
    let answer = sender.send_request(request.expect("a request"));
    let asked = tokio::spawn(answer);
    begun.notified().await;
    stop.cancel();
    task.await.expect("stopped although a request hangs");
    asked.abort();
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let (listener, address) = listen().await;
    let stop = Stop::new();
    let limits = ServerLimits { connections: 1, ..ServerLimits::default() };
    let server = Server::plain(hello()).with_limits(limits);
    let task = tokio::spawn(server.run(listener, stop.clone()));
    let mut first = handshake(TcpStream::connect(address).await.expect("connected")).await;
    assert_eq!(body(&mut first).await, "hello");
    let mut second = handshake(TcpStream::connect(address).await.expect("queued")).await;
    let waiting = tokio::spawn(async move { body(&mut second).await });
    assert_eq!(body(&mut first).await, "hello");
    assert!(!waiting.is_finished());
    drop(first);
    assert_eq!(waiting.await.expect("an answer"), "hello");
    stop.cancel();
    task.await.expect("stopped");
}

#[tokio::test]
async fn a_client_that_sends_nothing_does_not_keep_its_place() {
    let (listener, address) = listen().await;
    let stop = Stop::new();
    let handshake_within = Duration::from_millis(50);
    let limits =
        ServerLimits { connections: 1, handshake: handshake_within, ..ServerLimits::default() };
    let task = tokio::spawn(Server::plain(hello()).with_limits(limits).run(listener, stop.clone()));
    let silent = TcpStream::connect(address).await.expect("connected");
    let mut second = handshake(TcpStream::connect(address).await.expect("queued")).await;
    assert_eq!(body(&mut second).await, "hello");
    drop((silent, second));
    stop.cancel();
    task.await.expect("stopped");
}

/// The response to a request whose connection is kept.
async fn response(sender: &mut Sender) -> http::Response<hyper::body::Incoming> {
    let request = http::Request::get("/").header("host", "x").body(Empty::new());
    sender.send_request(request.expect("a request")).await.expect("a response")
}

#[tokio::test]
async fn a_server_that_leaves_ends_connections_with_their_next_answer() {
    let (listener, address) = listen().await;
    let (leaving, stop) = (Stop::new(), Stop::new());
    let server = Server::plain(hello()).leaving_at(leaving.clone());
    let task = tokio::spawn(server.run(listener, stop.clone()));
    let mut kept = handshake(TcpStream::connect(address).await.expect("connected")).await;
    let answer = response(&mut kept).await;
    assert_eq!(answer.headers().get("connection"), None);
    drop(answer);
    leaving.cancel();
    let mut new = handshake(TcpStream::connect(address).await.expect("connected")).await;
    for sender in [&mut kept, &mut new] {
        let answer = response(sender).await;
        assert_eq!(answer.headers()["connection"], "close");
        let answer = answer.into_body().collect().await.expect("an answer");
        assert_eq!(answer.to_bytes(), "hello");
        assert!(sender.ready().await.is_err(), "the connection has ended");
    }
    stop.cancel();
    task.await.expect("stopped");
}

/// Clients that keep idle connections would take all places.
#[tokio::test]
async fn answers_end_connections_while_few_places_are_free() {
    const PLACES: usize = 8;
    let (listener, address) = listen().await;
    let stop = Stop::new();
    let limits = ServerLimits { connections: PLACES, ..ServerLimits::default() };
    let task = tokio::spawn(Server::plain(hello()).with_limits(limits).run(listener, stop.clone()));
    let mut kept = Vec::new();
    for _ in 0..2 * PLACES {
        let mut sender = handshake(TcpStream::connect(address).await.expect("connected")).await;
        assert_eq!(body(&mut sender).await, "hello");
        kept.push(sender);
    }
    let mut open = 0;
    for sender in &mut kept {
        open += usize::from(sender.ready().await.is_ok());
    }
    // The server takes a place before the client that will get it connects.
    assert_eq!(open, PLACES - PLACES / KEPT_FREE - 1);
    stop.cancel();
    task.await.expect("stopped");
}

/// An idle connection is closed by the client, which ends it after 90 s in Go.
#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_not_closed_before_its_client_closes_it() {
    let (client, server) = duplex(4096);
    let connection = ServerConnection {
        service: hello(),
        tls: None,
        limits: ServerLimits::default(),
        _permit: Arc::new(Semaphore::new(1)).acquire_owned().await.expect("a permit"),
    };
    let connections = GracefulShutdown::new();
    let served = tokio::spawn(connection.serve(server, connections.watcher(), Stop::new()));
    let mut sender = handshake(client).await;
    assert_eq!(body(&mut sender).await, "hello");
    sleep(Duration::from_secs(91)).await;
    assert_eq!(body(&mut sender).await, "hello");
    // The client disappeared without a word, and its permit becomes free.
    served.await.expect("ended");
}

/// The server buffers a whole answer for TLS, and the client takes a part of it each time.
#[tokio::test(start_paused = true)]
async fn a_slow_client_that_takes_bytes_keeps_its_connection() {
    const PART: usize = 4096;
    const ANSWER: usize = 8 * PART;
    let (slot, ca, limits) = (CertificateSlot::new(), authority(), ServerLimits::default());
    let served = pair(&ca);
    slot.load(&served.certificate, &served.key).expect("loaded");
    let config = tls::server_config(slot, &ServerTls::default()).expect("a configuration");
    let (client, server) = duplex(PART);
    let connection = ServerConnection {
        service: Router::new().route("/", get(|| async { "a".repeat(ANSWER) })),
        tls: Some(TlsAcceptor::from(config)),
        limits,
        _permit: Arc::new(Semaphore::new(1)).acquire_owned().await.expect("a permit"),
    };
    let connections = GracefulShutdown::new();
    tokio::spawn(connection.serve(server, connections.watcher(), Stop::new()));
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let mut client = connector(&ca, None).connect(name, client).await.expect("a connection");
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    client.write_all(request).await.expect("a request");
    client.flush().await.expect("a request");
    // The bytes of the socket: the answer, encrypted.
    let (mut socket, _) = client.into_inner();
    let (mut taken, mut part) = (0, [0; PART]);
    loop {
        sleep(limits.stalled / 2).await;
        match socket.read(&mut part).await.expect("it reads") {
            0 => break,
            n => taken += n,
        }
    }
    assert!(taken > ANSWER, "{taken} bytes");
}
