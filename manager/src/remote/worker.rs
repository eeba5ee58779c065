//! The task of one worker: it connects, keeps connected, and tells how that is (docs/reference/multikueue.md §2.8).
//!
//! ```text
//!            +------------------------- another kubeconfig -------------------------+
//!            v                                                                      |
//!         loading --read--> reaching --answers--> connected --no answer--> reaching +
//!            |                  |                                           after a pause
//!         after a pause      no answer: after a pause
//! ```
//! While another kubeconfig is loaded and tried, the old connection goes on. If the new one reaches the same server it is
//! put beneath the old one and nothing is told; another server is another connection.
//!
//! The order of telling: the link is told before its watches begin, and told lost after they have ended.

use std::{sync::Arc, time::Duration};

use cluster::control::{Input, Link, RemoteInput};
use crds::names::reasons::{BAD_KUBE_CONFIG, CLIENT_CONNECTION_FAILED, CLUSTER_ALREADY_REGISTERED};
use jiff::Timestamp;
use runtime::Stop;
use tokio::{
    sync::watch::{Receiver, error::RecvError},
    time,
};

use super::{
    client::{self, Unreachable},
    connection::{Connection, Prepared, Way},
    decide::Wanted,
    identity,
    kubeconfig::Kubeconfig,
    load::{NotLoaded, load},
    refused::{Refused, not_loaded},
    retry::{Attempts, connected, lost},
    secret::Fingerprint,
    surroundings::Surroundings,
};

/// What a task is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// What it is for.
    Serve(Wanted),
    /// To end.
    End,
}

/// See the module.
pub(super) struct Worker {
    name: Box<str>,
    around: Arc<Surroundings>,
    goal: Goal,
    attempts: Attempts,
    connection: Option<Connection>,
}

/// What is tried next.
enum Goal {
    /// Nothing before something else is wanted.
    Nothing,
    /// To read this kubeconfig.
    Load(Box<str>, Fingerprint),
    /// To reach the server, again and again.
    Reach(Way),
}

impl Worker {
    /// A worker that is not connected.
    pub(super) fn new(name: &str, around: Arc<Surroundings>) -> Self {
        let attempts = Attempts::new(around.pace.first_pause);
        Self { name: name.into(), around, goal: Goal::Nothing, attempts, connection: None }
    }

    /// Does what it is told until the end, and leaves nothing behind.
    pub(super) async fn run(mut self, mut orders: Receiver<Order>, stop: Stop) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.obey(&mut orders) => {}
        }
        let message = "the connection was ended".to_owned();
        self.lose(lost(CLIENT_CONNECTION_FAILED, message)).await;
    }

    async fn obey(&mut self, orders: &mut Receiver<Order>) {
        loop {
            let order = orders.borrow_and_update().clone();
            match order {
                Order::End => return,
                Order::Serve(Wanted::Refuse(refused)) => {
                    self.goal = Goal::Nothing;
                    self.refuse(&refused).await;
                }
                Order::Serve(Wanted::Connect { secret, fingerprint, .. }) => {
                    self.attempts.reset();
                    self.goal = Goal::Load(secret, fingerprint);
                }
            }
            if self.pursue(orders).await.is_err() {
                return;
            }
        }
    }

    /// Works towards the goal until there is another. Only pauses are interrupted: each step is bounded, and would leave
    /// a loss untold if it ended half-way.
    async fn pursue(&mut self, orders: &mut Receiver<Order>) -> Result<(), RecvError> {
        loop {
            let pause = self.step().await;
            tokio::select! {
                changed = orders.changed() => return changed,
                () = sleep(pause) => {}
            }
        }
    }

    /// One step; the pause before the next.
    async fn step(&mut self) -> Option<Duration> {
        match &self.goal {
            Goal::Nothing => None,
            Goal::Load(secret, fingerprint) => {
                let (secret, fingerprint) = (secret.clone(), *fingerprint);
                self.load(&secret, fingerprint).await
            }
            Goal::Reach(way) => {
                let way = way.clone();
                self.reach(way).await
            }
        }
    }

    async fn load(&mut self, secret: &str, fingerprint: Fingerprint) -> Option<Duration> {
        let home = (&self.around.home, self.around.namespace.as_str());
        match load(home, (secret, fingerprint), self.around.pace.deadline).await {
            Ok(kubeconfig) => self.prepare(&kubeconfig).await,
            // What is watched may be behind what is read, so a refusal is not for ever.
            Err(NotLoaded::Refused(refused)) => {
                self.refuse(&refused).await;
                Some(self.attempts.fail())
            }
            Err(NotLoaded::Later(cause)) => {
                let cluster = &*self.name;
                tracing::warn!(cluster, cause, "the kubeconfig of a worker was not loaded");
                // The home cluster's trouble is not the worker's: a connection that stands goes on.
                if self.connection.is_none() {
                    self.tell(lost(BAD_KUBE_CONFIG, not_loaded(&cause))).await;
                }
                Some(self.attempts.fail())
            }
        }
    }

    async fn prepare(&mut self, kubeconfig: &Kubeconfig) -> Option<Duration> {
        self.attempts.reset();
        match client::build(kubeconfig, &self.around.requests.of(&self.name)) {
            Ok(client) => {
                let way = Way { server: kubeconfig.server.clone(), client, fresh: true };
                self.reach(way).await
            }
            // The same text would not make a client later either.
            Err(error) => {
                self.goal = Goal::Nothing;
                self.lose(lost(CLIENT_CONNECTION_FAILED, error.to_string())).await;
                None
            }
        }
    }

    async fn reach(&mut self, mut way: Way) -> Option<Duration> {
        let pace = self.around.pace;
        let pause = match self.try_out(&way).await {
            Ok(()) => {
                self.attempts.reset();
                self.connect(&way).await;
                way.fresh = false;
                pace.probe_every
            }
            Err(error @ Unreachable::Another(_)) => {
                self.attempts.reset();
                self.lose(lost(CLUSTER_ALREADY_REGISTERED, error.to_string())).await;
                pace.probe_every
            }
            Err(error) => {
                let pause = self.attempts.fail();
                let link = self.attempts.link(&error.to_string(), pause, Timestamp::now());
                self.lose(link).await;
                pause
            }
        };
        self.goal = Goal::Reach(way);
        Some(pause)
    }

    /// Whether the way leads to a server that answers, and to a cluster that is this registration's.
    async fn try_out(&mut self, way: &Way) -> Result<(), Unreachable> {
        client::probe(&way.client, self.around.pace.deadline).await?;
        self.watches_go_on()?;
        if way.fresh {
            identity::claim(&self.name, &way.client, &self.around).await?;
        }
        Ok(())
    }

    /// A watch ends only with its connection, or because something is wrong with it.
    fn watches_go_on(&mut self) -> Result<(), Unreachable> {
        if self.connection.as_mut().is_some_and(Connection::is_broken) {
            return Err(Unreachable::Failed("a watch ended".to_owned()));
        }
        Ok(())
    }

    /// Takes a way that was found to lead there.
    async fn connect(&mut self, way: &Way) {
        match &mut self.connection {
            Some(connection) if connection.leads_to(way) => {
                if way.fresh {
                    connection.go(way);
                    tracing::info!(
                        cluster = &*self.name,
                        "the credentials of a worker were replaced"
                    );
                }
                return;
            }
            Some(_) => {
                let message = "the kubeconfig names another server".to_owned();
                self.lose(lost(CLIENT_CONNECTION_FAILED, message)).await;
            }
            None => {}
        }
        let prepared = Prepared::new(&self.name, &self.around, way);
        self.tell(connected()).await;
        self.connection = Some(prepared.begin(&self.name, &self.around));
    }

    async fn refuse(&mut self, refused: &Refused) {
        self.lose(lost(refused.reason(), refused.message())).await;
    }

    /// Ends what stands on the connection, then tells.
    async fn lose(&mut self, link: Link) {
        self.around.workers.set(&self.name, None);
        if let Some(connection) = self.connection.take() {
            connection.end().await;
        }
        self.tell(link).await;
    }

    /// Whoever does not listen any more has no use for it.
    async fn tell(&self, link: Link) {
        let input = Input::Remote(self.name.clone(), RemoteInput::Link(link));
        let _ = self.around.inputs.send(input).await;
    }
}

/// For ever without a pause.
async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => time::sleep(pause).await,
        None => std::future::pending().await,
    }
}
