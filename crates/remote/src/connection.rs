//! A connection to a worker: its writer and its watches.
//!
//! It is created in two steps, because the connection status is reported between them: the writer exists before the worker is
//! reported as connected, and watches start after that.

use std::{sync::Arc, time::Duration};

use crds::names::labels::MULTI_KUEUE_ORIGIN;
use http::Uri;
use kube::Client;
use leader::WorkerSources;
use runtime::{
    Stop,
    writer::{WriteLimits, Writer},
};
use tokio::task::JoinSet;

use crate::{
    confirmed_lists::ConfirmedLists, context::WorkerContext, replaceable_client::ReplaceableClient,
};

/// Maximum number of writes in flight per worker.
const MAX_WRITES: usize = 32;

/// Timeout of a write.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// A server and a client for it.
#[derive(Clone)]
pub(super) struct WorkerEndpoint {
    /// The URL of the server.
    pub(super) server: Uri,
    /// The client.
    pub(super) client: Client,
    /// The cluster was not claimed through this client yet.
    pub(super) fresh: bool,
}

/// A connection with a writer.
pub(super) struct PreparedConnection {
    server: Uri,
    replaceable: ReplaceableClient,
    client: Client,
}

/// A connection with a writer and watches.
pub(super) struct OpenConnection {
    server: Uri,
    /// The identity of the cluster; `None` if the account may not read it.
    uid: Option<Box<str>>,
    replaceable: ReplaceableClient,
    watches: JoinSet<()>,
    stop: Stop,
}

impl PreparedConnection {
    /// Registers the writer of the worker.
    pub(super) fn new(name: &str, context: &WorkerContext, endpoint: &WorkerEndpoint) -> Self {
        let (replaceable, client) = ReplaceableClient::new(endpoint.client.clone());
        let writes = context.settings.metrics.writes.clone();
        let limits = WriteLimits { max_in_flight: MAX_WRITES, deadline: WRITE_DEADLINE };
        let writer = Writer::new(client.clone(), name, limits, writes);
        // A worker is another cluster: its API server does not know which manager leads.
        let writer = writer.led_by(context.leadership.clone());
        context.workers.set(name, Some(writer));
        Self { server: endpoint.server.clone(), replaceable, client }
    }

    /// Starts the watches of the objects that belong to this manager. Their lists count while the cluster has the identity that was
    /// claimed; always if it is not known.
    pub(super) fn begin(
        self,
        name: &str,
        uid: Option<&str>,
        context: &WorkerContext,
    ) -> OpenConnection {
        let Self { server, replaceable, client } = self;
        let confirmation = ConfirmedLists::new(name, client.clone(), context.settings.timing, uid);
        let (stop, mut watches) = (Stop::new(), JoinSet::new());
        let mut sources = WorkerSources {
            kinds: &context.settings.kinds,
            namespace: &context.settings.namespace,
            cluster: name,
            queues: context.settings.watches_queues,
            client,
            inputs: context.inputs.clone(),
            confirmation: Arc::new(confirmation),
            metrics: &context.settings.metrics.watches,
            stop: stop.clone(),
            tasks: &mut watches,
        };
        // Managers that share a worker have different origins and do not see each other's copies.
        let ours = format!("{MULTI_KUEUE_ORIGIN}={}", context.settings.origin);
        sources.start(&ours, context.settings.check_every);
        OpenConnection { server, uid: uid.map(Into::into), replaceable, watches, stop }
    }
}

impl OpenConnection {
    /// Whether the endpoint has the server of this connection.
    pub(super) fn has_server_of(&self, endpoint: &WorkerEndpoint) -> bool {
        self.server == endpoint.server
    }

    /// Whether this identity is that of the cluster of this connection, as far as both are known.
    pub(super) fn is_cluster(&self, uid: Option<&str>) -> bool {
        self.uid.as_deref().zip(uid).is_none_or(|(known, found)| known == found)
    }

    /// Whether the identity of its cluster is known.
    pub(super) fn knows_cluster(&self) -> bool {
        self.uid.is_some()
    }

    /// Uses the credentials of the endpoint from the next request on.
    pub(super) fn use_credentials_of(&self, endpoint: &WorkerEndpoint) {
        self.replaceable.replace(endpoint.client.clone());
    }

    /// Whether a watch has ended. No watch ends by itself.
    pub(super) fn is_broken(&mut self) -> bool {
        self.watches.try_join_next().is_some()
    }

    /// Stops the watches and waits for them.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        // No change of an ended watch may follow the report of the loss.
        while self.watches.join_next().await.is_some() {}
    }
}
