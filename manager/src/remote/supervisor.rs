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

use cluster::control::{Input, RemoteInput};
use crds::{names::reasons::CLIENT_CONNECTION_FAILED, v1beta2::MultiKueueCluster};
use kube::Api;
use runtime::{
    Stop,
    lease::Leadership,
    watch::{Change, Config, Watch},
};
use tokio::{
    sync::{
        mpsc::{Receiver, channel},
        watch,
    },
    task::{Id, JoinError, JoinSet},
    time,
};

use super::{
    decide::{Known, Retirement, Step, Wanted, decide},
    picture::Picture,
    retry::lost,
    secret::Seen,
    surroundings::Surroundings,
    worker::{Order, Worker},
};

/// Changes on their way; they are taken at once.
const BACKLOG: usize = 16;

/// How long tasks may take to end before they are dropped.
const ENDING: Duration = Duration::from_secs(10);

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
pub(super) struct Supervisor {
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

impl Supervisor {
    pub(super) fn new(around: Arc<Surroundings>, term: Stop) -> Self {
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
    pub(super) async fn run(&mut self) {
        let Surroundings { home, namespace, watches, .. } = &*Arc::clone(&self.around);
        let api = Api::all(home.clone());
        let clusters = Watch::new("worker-clusters", api, Config::default(), watches);
        let api = Api::namespaced(home.clone(), namespace);
        let secrets = Watch::new("worker-secrets", api, Config::default(), watches);
        let (cluster_sender, cluster_changes) = channel(BACKLOG);
        let (secret_sender, secret_changes) = channel(BACKLOG);
        let term = self.term.clone();
        let watching = Box::pin(async {
            tokio::join!(
                clusters.run(cluster_sender, term.clone()),
                secrets.run(secret_sender, term.clone())
            )
        });
        tokio::select! {
            _ = watching => {}
            () = self.follow(cluster_changes, secret_changes) => {}
        }
    }

    /// Decides anew after whatever happens.
    async fn follow(
        &mut self,
        mut clusters: Receiver<Change<MultiKueueCluster>>,
        mut secrets: Receiver<Change<Seen>>,
    ) {
        let mut clean = self.around.workers.clean();
        loop {
            let next = self.next();
            tokio::select! {
                Some(change) = clusters.recv() => self.clusters.take(change),
                Some(change) = secrets.recv() => self.secrets.take(change),
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended).await,
                Ok(()) = clean.changed() => {}
                () = until(next) => {}
            }
            self.decide(time::Instant::now().into_std());
        }
    }

    /// Decides about every worker that is registered or has a task.
    fn decide(&mut self, now: Instant) {
        if !self.clusters.listed || !self.secrets.listed {
            return;
        }
        self.note_claims();
        let keep_for = self.around.keep_for;
        let names: BTreeSet<Box<str>> =
            self.clusters.objects.keys().chain(self.held.keys()).cloned().collect();
        for name in names {
            let known = self.held.get(&name).map_or(&Known::None, |held| &held.known);
            let cluster = self.clusters.objects.get(&name);
            let clean = self.around.workers.is_clean(&name);
            let retirement = Retirement { now, keep_for, clean };
            let secret = |secret: &str| self.secrets.objects.get(secret);
            let step = decide(known, cluster, secret, retirement);
            self.carry_out(&name, step);
        }
    }

    /// Which clusters are registered. Who has a task still uses its cluster.
    fn note_claims(&self) {
        let mut claims = self.around.claims.lock();
        for (name, cluster) in &self.clusters.objects {
            claims.see(name, cluster);
        }
        claims
            .keep(|name| self.clusters.objects.contains_key(name) || self.held.contains_key(name));
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
            let link = Input::Remote(name.clone(), RemoteInput::Link(link));
            let _ = self.around.inputs.send(link).await;
        }
        let _ = self.around.inputs.send(Input::Remote(name, RemoteInput::GivenUp)).await;
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
    pub(super) async fn end(mut self) {
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

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
