//! The connections that watches share, each for a bounded number of open watches.
//!
//! A server bounds the streams of an HTTP/2 connection, kube-apiserver to 100 unless it is set; a request above that waits without an
//! error until a stream ends, which that of a watch does after minutes. So a watch goes to the first connection that has room for it, and
//! a further connection is made if none has. One without watches is closed, except the first.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper_util::client::legacy;
use kube::client::Body as RequestBody;
use parking_lot::Mutex;

use super::ServerConnections;

/// The open watches of a connection. Servers and proxies allow 100 streams or more.
pub(super) const WATCHES_PER_CONNECTION: usize = 80;

/// See the module.
#[derive(Clone)]
pub(super) struct WatchConnections(Arc<SharedConnections>);

struct SharedConnections {
    per_connection: usize,
    /// Makes a client with a connection of its own.
    connect: Box<dyn Fn() -> ServerConnections + Send + Sync>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    connections: Vec<WatchConnection>,
    next_number: u64,
}

struct WatchConnection {
    number: u64,
    client: ServerConnections,
    n_open: usize,
}

/// A watch that is open until this is dropped.
struct CountedWatch {
    connections: Arc<SharedConnections>,
    number: u64,
}

/// The body of an answer. That of a watch counts for its connection until it is dropped.
pub struct ServerBody {
    body: Incoming,
    _watch: Option<CountedWatch>,
}

impl WatchConnections {
    pub(super) fn new(
        per_connection: usize,
        connect: impl Fn() -> ServerConnections + Send + Sync + 'static,
    ) -> Self {
        let (connect, open) = (Box::new(connect), Mutex::default());
        Self(Arc::new(SharedConnections { per_connection, connect, open }))
    }

    /// Sends the request of a watch.
    pub(super) fn request(
        &self,
        request: Request<RequestBody>,
    ) -> BoxFuture<'static, Result<Response<ServerBody>, legacy::Error>> {
        let (client, watch) = self.open();
        let answer = client.request(request);
        // Moved into the future: a request that fails or is given up is no open watch.
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| ServerBody { body, _watch: Some(watch) }))
        })
    }

    fn open(&self) -> (ServerConnections, CountedWatch) {
        let shared = &self.0;
        let (number, client) = shared.open.lock().open(shared.per_connection, &*shared.connect);
        (client, CountedWatch { connections: Arc::clone(shared), number })
    }
}

impl OpenConnections {
    /// Counts a watch for the first connection that has room.
    fn open(
        &mut self,
        per_connection: usize,
        connect: &dyn Fn() -> ServerConnections,
    ) -> (u64, ServerConnections) {
        let has_room = |it: &&mut WatchConnection| it.n_open < per_connection;
        if let Some(connection) = self.connections.iter_mut().find(has_room) {
            connection.n_open += 1;
            return (connection.number, connection.client.clone());
        }
        let (number, client) = (self.next_number, connect());
        self.next_number += 1;
        self.connections.push(WatchConnection { number, client: client.clone(), n_open: 1 });
        (number, client)
    }

    /// Counts the end of a watch. Returns its connection if it is not used any more.
    fn close(&mut self, number: u64) -> Option<WatchConnection> {
        let index = self.connections.iter().position(|it| it.number == number)?;
        let connection = self.connections.get_mut(index)?;
        connection.n_open = connection.n_open.saturating_sub(1);
        let is_idle = connection.n_open == 0 && index > 0;
        is_idle.then(|| self.connections.remove(index))
    }
}

impl Drop for CountedWatch {
    fn drop(&mut self) {
        let unused = self.connections.open.lock().close(self.number);
        // Closed without the lock.
        drop(unused);
    }
}

impl ServerBody {
    /// The body of the answer to a request that is no watch.
    pub(super) fn uncounted(body: Incoming) -> Self {
        Self { body, _watch: None }
    }
}

impl Body for ServerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
