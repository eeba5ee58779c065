use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use futures::future::join_all;
use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};

use super::*;
use crate::transport::{connections, connector};

/// The streams that the server allows per connection, and the watches that the client opens on one.
const STREAMS: usize = 5;

/// For a busy machine.
const WITHIN: Duration = Duration::from_secs(30);

/// A server over HTTP/2 without TLS. Watches never end; `/silent` is not answered.
struct WatchServer {
    address: SocketAddr,
    /// The connections that are open.
    n_connections: Arc<AtomicUsize>,
    /// The requests that have come.
    n_requests: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for WatchServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    request: Request<Incoming>,
    n_requests: Arc<AtomicUsize>,
) -> Result<Response<EndlessBody>, Infallible> {
    n_requests.fetch_add(1, SeqCst);
    if request.uri().path() == "/silent" {
        std::future::pending::<()>().await;
    }
    Ok(Response::new(EndlessBody))
}

/// The stream of a watch without events.
struct EndlessBody;

impl Body for EndlessBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

async fn serve(listener: TcpListener, n_open: Arc<AtomicUsize>, n_requests: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (n_open, n_requests) = (Arc::clone(&n_open), Arc::clone(&n_requests));
        n_open.fetch_add(1, SeqCst);
        tokio::spawn(async move {
            let mut server = http2::Builder::new(TokioExecutor::new());
            server.max_concurrent_streams(u32::try_from(STREAMS).expect("a few"));
            let service = service_fn(|request| answer(request, Arc::clone(&n_requests)));
            // Ends with the client.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
            n_open.fetch_sub(1, SeqCst);
        });
    }
}

impl WatchServer {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (n_connections, n_requests) = (Arc::default(), Arc::default());
        let served = serve(listener, Arc::clone(&n_connections), Arc::clone(&n_requests));
        let task = tokio::spawn(served);
        Self { address, n_connections, n_requests, task }
    }

    fn client(&self) -> WatchConnections {
        let config = kube::Config::new(self.uri("/").parse().expect("an address"));
        let connector = connector(&config, true).expect("a connector");
        WatchConnections::new(STREAMS, move || {
            connections().http2_only(true).build(connector.clone())
        })
    }

    fn uri(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Opens a watch.
    async fn watch(&self, client: &WatchConnections) -> Response<ServerBody> {
        let request = Request::get(self.uri("/watch")).body(RequestBody::empty());
        let answer = client.request(request.expect("a request"));
        timeout(WITHIN, answer).await.expect("in time").expect("an answer")
    }

    async fn watches(&self, client: &WatchConnections, n: usize) -> Vec<Response<ServerBody>> {
        join_all((0..n).map(|_| self.watch(client))).await
    }

    async fn until_connections(&self, n: usize) {
        let reached = async {
            while self.n_connections.load(SeqCst) != n {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let open = || self.n_connections.load(SeqCst);
        timeout(WITHIN, reached).await.unwrap_or_else(|_| panic!("{} are open", open()));
    }
}

/// The open watches by connection.
fn open(client: &WatchConnections) -> Vec<usize> {
    client.0.open.lock().connections.iter().map(|it| it.n_open).collect()
}

#[tokio::test]
async fn a_further_connection_is_opened_for_watches_beyond_the_bound() {
    let server = WatchServer::new().await;
    let client = server.client();
    let mut watches = server.watches(&client, 2 * STREAMS + 1).await;
    assert_eq!(open(&client), [STREAMS, STREAMS, 1]);
    server.until_connections(3).await;

    // The next watch takes the place of one that has ended.
    watches.remove(0);
    assert_eq!(open(&client), [STREAMS - 1, STREAMS, 1]);
    watches.push(server.watch(&client).await);
    assert_eq!(open(&client), [STREAMS, STREAMS, 1]);

    drop(watches);
    assert_eq!(open(&client), [0], "the first one stays");
    server.until_connections(1).await;
    let _watches = server.watches(&client, STREAMS).await;
    server.until_connections(1).await;
}

#[tokio::test]
async fn a_request_that_is_given_up_or_fails_is_no_open_watch() {
    let server = WatchServer::new().await;
    let client = server.client();
    for sent in [false, true] {
        let before = server.n_requests.load(SeqCst);
        let request = Request::get(server.uri("/silent")).body(RequestBody::empty());
        let mut answer = client.request(request.expect("a request"));
        assert_eq!(open(&client), [1]);
        while sent && server.n_requests.load(SeqCst) == before {
            let _ = timeout(Duration::from_millis(5), &mut answer).await;
        }
        drop(answer);
        assert_eq!(open(&client), [0], "sent: {sent}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let request = Request::get(format!("http://{address}/")).body(RequestBody::empty());
    assert!(client.request(request.expect("a request")).await.is_err());
    assert_eq!(open(&client), [0]);
}
