//! A connection to a worker: the writer and the watches that stand on it.
//!
//! It is made in two steps, as the link is told between them: the writer is there before anybody hears that the worker
//! can be used, and nothing is watched before that.

use std::time::Duration;

use cluster::control::sources::Sources;
use crds::names::labels::MULTI_KUEUE_ORIGIN;
use http::Uri;
use kube::Client;
use runtime::{Stop, writer::Writer};
use tokio::task::JoinSet;

use super::{surroundings::Surroundings, switch::Switch};

/// Writes on a worker at a time; more wait their turn.
const WRITES: usize = 32;

/// How long a write may take.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// A way to a server.
#[derive(Clone)]
pub(super) struct Way {
    /// The server.
    pub(super) server: Uri,
    /// Goes there.
    pub(super) client: Client,
    /// It was not used yet.
    pub(super) fresh: bool,
}

/// A connection that can be written on.
pub(super) struct Prepared {
    server: Uri,
    switch: Switch,
    client: Client,
}

/// A connection that is watched too.
pub(super) struct Connection {
    server: Uri,
    switch: Switch,
    watches: JoinSet<()>,
    stop: Stop,
}

impl Prepared {
    /// Lets the worker be written on.
    pub(super) fn new(name: &str, around: &Surroundings, way: &Way) -> Self {
        let (switch, client) = Switch::new(way.client.clone());
        let writes = around.writes.clone();
        let writer = Writer::new(client.clone(), name, WRITES, WRITE_DEADLINE, writes);
        around.workers.set(name, Some(writer));
        Self { server: way.server.clone(), switch, client }
    }

    /// Begins to watch what the worker has of ours.
    pub(super) fn begin(self, name: &str, around: &Surroundings) -> Connection {
        let Self { server, switch, client } = self;
        let (stop, mut watches) = (Stop::new(), JoinSet::new());
        let mut sources = Sources {
            client,
            inputs: around.inputs.clone(),
            metrics: &around.watches,
            stop: stop.clone(),
            tasks: &mut watches,
        };
        let ours = format!("{MULTI_KUEUE_ORIGIN}={}", around.origin);
        sources.worker(name, &ours, around.check_every);
        Connection { server, switch, watches, stop }
    }
}

impl Connection {
    /// Whether the way leads to the same server.
    pub(super) fn leads_to(&self, way: &Way) -> bool {
        self.server == way.server
    }

    /// Goes this way from the next request on.
    pub(super) fn go(&self, way: &Way) {
        self.switch.choose(way.client.clone());
    }

    /// Whether a watch has ended, which none does by itself.
    pub(super) fn is_broken(&mut self) -> bool {
        self.watches.try_join_next().is_some()
    }

    /// Ends the watches, and returns when nothing more comes of them.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        while self.watches.join_next().await.is_some() {}
    }
}
