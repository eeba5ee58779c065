//! Keeps one task per MultiKueueCluster, and tells each what it is for.
//!
//! It watches MultiKueueClusters and the Secrets of the manager's namespace, decides with `decide` and waits for no worker.
//! Before both were listed it does nothing. It works only while the process leads: another leader has connections of its
//! own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use cluster::control::{
    Input, RemoteInput,
    task::{Inputs, Workers},
};
use crds::{names::reasons::CLIENT_CONNECTION_FAILED, v1beta2::MultiKueueCluster};
use kube::{Api, Client};
use runtime::{
    Stop,
    lease::Leadership,
    requests::RequestMetrics,
    watch::{Change, Config, Key, Watch, WatchMetrics},
    writer::WriteMetrics,
};
use tokio::{
    sync::{mpsc::channel, watch},
    task::{Id, JoinError, JoinSet},
    time,
};

use super::{
    decide::{Known, Step, Time, Wanted, decide},
    retry::lost,
    secret::Seen,
    worker::{Order, Worker},
};

/// Changes on their way; they are taken at once.
const BACKLOG: usize = 16;

/// How long tasks may take to end before they are dropped.
const ENDING: Duration = Duration::from_secs(10);

/// What connections stand on.
pub(crate) struct Surroundings {
    /// The manager's own cluster.
    pub(crate) home: Client,
    /// Where the Secrets are.
    pub(crate) namespace: String,
    /// Hears how links are, and what workers have.
    pub(crate) inputs: Inputs,
    /// Gets a writer for each worker that is connected.
    pub(crate) workers: Workers,
    /// Written on everything of ours.
    pub(crate) origin: String,
    /// Counts all requests.
    pub(crate) requests: RequestMetrics,
    /// Counts failures of watches.
    pub(crate) watches: WatchMetrics,
    /// Counts writes.
    pub(crate) writes: WriteMetrics,
    /// How long a connection goes on without its MultiKueueCluster: twice the time after which a silent worker is lost.
    pub(crate) keep_for: Duration,
    /// When things are done.
    pub(crate) pace: Pace,
}

/// When workers are asked, and how long they may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Between probes of a connection that stands.
    pub(crate) probe_every: Duration,
    /// For a probe, or for reading a Secret.
    pub(crate) deadline: Duration,
    /// After the first attempt that failed.
    pub(crate) first_pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let five = Duration::from_secs(5);
        Self { probe_every: five, deadline: five, first_pause: five }
    }
}

/// Keeps connections to all workers whenever this process leads, until `stop`.
pub(crate) async fn supervise(around: Surroundings, mut leadership: Leadership, stop: Stop) {
    let around = Arc::new(around);
    while !stop.is_cancelled() {
        tokio::select! {
            () = stop.cancelled() => return,
            () = leadership.gained() => {}
        }
        let mut supervisor = Supervisor::new(Arc::clone(&around), stop.child_token());
        tokio::select! {
            () = stop.cancelled() => {}
            () = leadership.lost() => {}
            () = supervisor.run() => {}
        }
        supervisor.end().await;
    }
}

/// What is known during one term.
struct Supervisor {
    around: Arc<Surroundings>,
    /// Ends with the term.
    term: Stop,
    clusters: Picture<MultiKueueCluster>,
    secrets: Picture<Seen>,
    held: BTreeMap<Box<str>, Held>,
    names: BTreeMap<Id, Box<str>>,
    tasks: JoinSet<()>,
}

/// A worker's task.
struct Held {
    known: Known,
    orders: watch::Sender<Order>,
}

/// The objects of a kind, by name.
struct Picture<K> {
    objects: BTreeMap<Box<str>, K>,
    listed: bool,
}

impl Supervisor {
    fn new(around: Arc<Surroundings>, term: Stop) -> Self {
        Self {
            around,
            term,
            clusters: Picture::default(),
            secrets: Picture::default(),
            held: BTreeMap::new(),
            names: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Watches and decides until the term ends.
    async fn run(&mut self) {
        let Surroundings { home, namespace, watches, .. } = &*Arc::clone(&self.around);
        let api = Api::all(home.clone());
        let clusters = Watch::new("worker-clusters", api, Config::default(), watches);
        let api = Api::namespaced(home.clone(), namespace);
        let secrets = Watch::new("worker-secrets", api, Config::default(), watches);
        let (cluster_sender, mut cluster_changes) = channel(BACKLOG);
        let (secret_sender, mut secret_changes) = channel(BACKLOG);
        let term = self.term.clone();
        let watching = async {
            tokio::join!(
                clusters.run(cluster_sender, term.clone()),
                secrets.run(secret_sender, term.clone())
            )
        };
        let deciding = async {
            loop {
                let next = self.next();
                tokio::select! {
                    Some(change) = cluster_changes.recv() => self.clusters.take(change),
                    Some(change) = secret_changes.recv() => self.secrets.take(change),
                    Some(ended) = self.tasks.join_next_with_id() => self.ended(ended).await,
                    () = until(next) => {}
                }
                self.decide(time::Instant::now().into_std());
            }
        };
        tokio::select! {
            _ = watching => {}
            () = deciding => {}
        }
    }

    /// Decides about every worker that is registered or has a task.
    fn decide(&mut self, now: Instant) {
        if !self.clusters.listed || !self.secrets.listed {
            return;
        }
        let time = Time { now, keep_for: self.around.keep_for };
        let names: BTreeSet<Box<str>> =
            self.clusters.objects.keys().chain(self.held.keys()).cloned().collect();
        for name in names {
            let known = self.held.get(&name).map_or(&Known::None, |held| &held.known);
            let cluster = self.clusters.objects.get(&name);
            let step = decide(known, cluster, |secret| self.secrets.objects.get(secret), time);
            self.carry_out(&name, step);
        }
    }

    fn carry_out(&mut self, name: &str, step: Step) {
        match (step, self.held.get_mut(name)) {
            (Step::Tell(wanted), None) => self.begin(name, wanted),
            (Step::Tell(wanted), Some(held)) => held.tell(wanted),
            (Step::Retire(until), Some(held)) => held.retire(until),
            (Step::End, Some(held)) => held.end(),
            (Step::Keep | Step::Retire(_) | Step::End, _) => {}
        }
    }

    fn begin(&mut self, name: &str, wanted: Wanted) {
        let (orders, heard) = watch::channel(Order::Serve(wanted.clone()));
        let worker = Worker::new(name, Arc::clone(&self.around));
        let task = self.tasks.spawn(worker.run(heard, self.term.clone()));
        self.names.insert(task.id(), name.into());
        self.held.insert(name.into(), Held { known: Known::Runs(wanted), orders });
    }

    /// Forgets a task that is over. One that broke could not tell that its connection is lost.
    async fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let Some(name) = self.names.remove(&id) else {
            return;
        };
        self.held.remove(&name);
        if let Err(error) = ended {
            tracing::error!(cluster = &*name, %error, "the task of a worker failed");
            self.around.workers.set(&name, None);
            let link = lost(CLIENT_CONNECTION_FAILED, "the connection failed".to_owned());
            let _ = self.around.inputs.send(Input::Remote(name, RemoteInput::Link(link))).await;
        }
    }

    /// When the next retired task is to end.
    fn next(&self) -> Option<Instant> {
        let retired = |held: &Held| match held.known {
            Known::Retires(_, until) => Some(until),
            Known::None | Known::Runs(_) | Known::Ends => None,
        };
        self.held.values().filter_map(retired).min()
    }

    /// Lets all tasks tell that their connections are over.
    async fn end(mut self) {
        self.term.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if time::timeout(ENDING, all).await.is_err() {
            tracing::warn!("connections to workers did not end in time");
        }
        for name in self.held.keys() {
            self.around.workers.set(name, None);
        }
    }
}

impl Held {
    fn tell(&mut self, wanted: Wanted) {
        let order = Order::Serve(wanted.clone());
        // A cluster that is registered again as it was goes on as it is.
        self.orders.send_if_modified(|told| std::mem::replace(told, order.clone()) != order);
        self.known = Known::Runs(wanted);
    }

    fn retire(&mut self, until: Instant) {
        if let Known::Runs(wanted) = std::mem::take(&mut self.known) {
            self.known = Known::Retires(wanted, until);
        }
    }

    fn end(&mut self) {
        self.orders.send_replace(Order::End);
        self.known = Known::Ends;
    }
}

impl<K> Default for Picture<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: false }
    }
}

impl<K: kube::Resource> Picture<K> {
    fn take(&mut self, change: Change<K>) {
        match change {
            Change::Apply(object) => self.put(object),
            Change::Delete(key) => {
                self.objects.remove(&key.name);
            }
            Change::Reset { objects, removed } => {
                objects.into_iter().for_each(|object| self.put(object));
                for key in removed {
                    self.objects.remove(&key.name);
                }
                self.listed = true;
            }
        }
    }

    fn put(&mut self, object: K) {
        self.objects.insert(Key::of(&object).name, object);
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
