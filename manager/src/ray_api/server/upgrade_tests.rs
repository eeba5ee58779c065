//! WebSockets through real connections: a caller, the server, and an API server with an echo behind its proxy.

use std::{convert::Infallible, net::SocketAddr};

use http_body_util::{BodyExt, Empty};
use hyper::{
    body::{Bytes, Incoming},
    upgrade,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use kube::{Config, client::Body as ClientBody};
use runtime::{server::Server, transport};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, split},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinHandle},
    time::Instant,
};

use super::{
    tests::{PlayedServer, head},
    *,
};
use crate::ray_api::request_limits::UPGRADES_PER_HEAD;

/// For a busy machine.
const WITHIN: Duration = Duration::from_secs(30);

/// What a head of the test sends at once.
const GREETING: &[u8] = b"of the head";

/// The server behind a port, in front of a played API server.
struct ServedApi {
    played: PlayedServer,
    address: SocketAddr,
    server: Arc<RayApiServer>,
    stop: Stop,
    serving: JoinHandle<()>,
    behind: AbortHandle,
}

impl ServedApi {
    async fn new() -> Self {
        let played = PlayedServer::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let behind = tokio::spawn(serve_played(listener, played.clone())).abort_handle();
        let config = Config::new(url.parse().expect("a url"));
        let client = transport::builder(&config).expect("a client").build();
        let stop = Stop::new();
        let server = Arc::new(played.server(&client, &stop));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&server));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(Server::plain(router).run(listener, stop.clone()));
        Self { played, address, server, stop, serving, behind }
    }

    /// Sends a handshake. Returns the head of the answer, and the connection.
    async fn shake_hands(&self, path: &str, headers: &str) -> (String, TcpStream) {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer jane\r\nConnection: Upgrade\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let byte = timeout(WITHIN, stream.read_u8()).await.expect("in time");
            answer.push(byte.expect("an answer"));
        }
        (String::from_utf8(answer).expect("text"), stream)
    }

    async fn open(&self) -> TcpStream {
        let (answer, stream) = self.shake_hands(&head("c-head-svc:8265", "ws"), WEBSOCKET).await;
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        stream
    }
}

impl Drop for ServedApi {
    fn drop(&mut self) {
        self.behind.abort();
        self.serving.abort();
    }
}

const WEBSOCKET: &str = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: a=b\r\n";

/// An API server that speaks HTTP/2 as well.
async fn serve_played(listener: TcpListener, played: PlayedServer) {
    while let Ok((stream, _)) = listener.accept().await {
        let played = played.clone();
        let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
            let played = played.clone();
            async move {
                let upgraded = upgrade::on(&mut request);
                let (parts, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes().to_vec();
                let request = http::Request::from_parts(parts, ClientBody::from(body));
                let answer = played.answer(request).await;
                let answer = answer.expect("an answer");
                if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                    tokio::spawn(async move { echo(upgraded.await.expect("upgraded")).await });
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let connection = connection.into_owned();
        // A client that goes away is none of the server's concern.
        tokio::spawn(async move { drop(connection.await) });
    }
}

/// Greets, and sends back what comes.
async fn echo(stream: upgrade::Upgraded) {
    let (mut reads, mut writes) = split(TokioIo::new(stream));
    let _ = writes.write_all(GREETING).await;
    // Ends with the other side.
    let _ = copy(&mut reads, &mut writes).await;
}

async fn expect(stream: &mut TcpStream, text: &[u8]) {
    let mut read = vec![0; text.len()];
    let read_all = stream.read_exact(&mut read);
    timeout(WITHIN, read_all).await.expect("in time").expect("bytes");
    assert_eq!(read, text);
}

async fn until_closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // An end and a reset are the same here.
    let _ = timeout(WITHIN, stream.read_to_end(&mut rest)).await.expect("in time");
}

#[tokio::test]
async fn a_websocket_reaches_the_head() {
    let api = ServedApi::new().await;
    let mut stream = api.open().await;
    expect(&mut stream, GREETING).await;
    for text in [&b"a frame"[..], &[0x81; 100]] {
        stream.write_all(text).await.expect("sent");
        expect(&mut stream, text).await;
    }
    let [reached] = &api.played.reached("/proxy/")[..] else { panic!("one request") };
    assert_eq!(reached.headers["upgrade"], "websocket");
    assert_eq!(reached.headers["sec-websocket-key"], "dGhlIHNhbXBsZSBub25jZQ==");
    assert!(!reached.headers.contains_key("authorization"), "{:?}", reached.headers);
    assert!(!reached.headers.contains_key("cookie"), "{:?}", reached.headers);
}

#[tokio::test]
async fn a_handshake_is_reviewed_and_may_have_another_answer() {
    let api = ServedApi::new().await;
    for (path, headers, expected, body) in [
        (head("forbidden-head-svc", "ws"), WEBSOCKET, 403, "Forbidden"),
        (head("db", "ws"), WEBSOCKET, 404, "kuberay service not found"),
        (head("c-head-svc", "../ws"), WEBSOCKET, 400, "relative"),
        (head("c-head-svc", "404"), WEBSOCKET, 404, "of the head"),
        (head("c-head-svc", "200"), WEBSOCKET, 200, "of the head"),
        (head("c-head-svc", "ws"), "Upgrade: SPDY/3.1\r\n", 400, "SPDY/3.1"),
        (head("c-head-svc", "other-ws"), WEBSOCKET, 502, "not asked for"),
        ("/apis/ray.io/v1/rayjobs".to_owned(), WEBSOCKET, 400, "only requests to Services"),
    ] {
        let close = format!("{headers}Connection: close\r\n");
        let (answer, mut stream) = api.shake_hands(&path, &close).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{path}: {answer}");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("a body");
        let rest = String::from_utf8_lossy(&rest).into_owned();
        assert!(rest.contains(body), "{path}: {rest}");
    }
    assert!(
        api.played.reached("forbidden").is_empty() && api.played.reached("db/proxy").is_empty()
    );
}

#[tokio::test]
async fn open_websockets_of_a_head_have_a_number() {
    let api = ServedApi::new().await;
    let mut open = Vec::new();
    for _ in 0..UPGRADES_PER_HEAD {
        open.push(api.open().await);
    }
    let path = head("c-head-svc:8265", "ws");
    let (answer, _) = api.shake_hands(&path, WEBSOCKET).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    // Other requests to the head have a limit of their own.
    let (answer, _) = api.shake_hands(&head("c-head-svc:8265", "200"), "").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(open);
    let begin = Instant::now();
    while !api.shake_hands(&path, WEBSOCKET).await.0.starts_with("HTTP/1.1 101 ") {
        assert!(begin.elapsed() < WITHIN, "the permits are free again");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_open_websocket_ends_with_the_server() {
    let api = ServedApi::new().await;
    let mut stream = api.open().await;
    expect(&mut stream, GREETING).await;
    api.stop.cancel();
    until_closed(stream).await;
}

#[tokio::test]
async fn an_open_websocket_ends_with_its_right() {
    let api = ServedApi::new().await;
    let path = head("c-head-svc:8265", "ws");
    let open = || OpenUpgrade {
        server: Arc::clone(&api.server),
        user: RequestUser { name: "jane".to_owned(), ..RequestUser::default() },
        path: path.clone(),
        cluster: None,
        owner: Some(ray_api::ServiceOwner {
            kind: ray_api::RayOwnerKind::Cluster,
            name: "c".to_owned(),
        }),
        permit: api.server.limits.try_acquire_upgrade("ml", "c-head-svc").expect("room"),
    };
    assert!(open().is_allowed().await);
    assert!(!OpenUpgrade { cluster: Some("east".to_owned()), ..open() }.is_allowed().await);
    let forbidden = RequestUser { name: "forbidden".to_owned(), ..RequestUser::default() };
    assert!(!OpenUpgrade { user: forbidden, ..open() }.is_allowed().await);
    let absent = head("absent-head-svc", "ws");
    assert!(!OpenUpgrade { path: absent, ..open() }.is_allowed().await);
    api.behind.abort();
    let unasked = RequestUser { name: "joan".to_owned(), ..RequestUser::default() };
    assert!(OpenUpgrade { user: unasked, ..open() }.is_allowed().await, "no review is no denial");
}

#[tokio::test]
async fn a_request_over_http_2_is_no_handshake() {
    let api = ServedApi::new().await;
    let stream = TcpStream::connect(api.address).await.expect("a connection");
    let shaken =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.expect("a connection");
    tokio::spawn(async move { drop(connection.await) });
    let request = http::Request::get(format!("http://api{}", head("c-head-svc", "200")));
    let request = request.header("authorization", "Bearer jane").body(Empty::<Bytes>::new());
    let answer = sender.send_request(request.expect("a request")).await.expect("an answer");
    assert_eq!(answer.status(), 200);
}
