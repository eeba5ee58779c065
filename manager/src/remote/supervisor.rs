//! Runs one task per MultiKueueCluster and sends each its target.
//!
//! The supervisor watches MultiKueueClusters and the Secrets of the manager's namespace, decides with `reconcile`, and never
//! waits for a worker. It starts after both kinds were listed, and runs only while the process leads, because the next leader
//! opens its own connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use cluster::control::{ManagerInput, WorkerInput};
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
    context::WorkerContext,
    kubeconfig_secret::KubeconfigSecret,
    object_store::ObjectStore,
    reconcile::{Retirement, SupervisorStep, TargetConnection, TaskState, reconcile},
    retry::lost,
    worker::{WorkerCommand, WorkerLoop},
};

/// Capacity of the channels from the watches.
const CHANNEL_CAPACITY: usize = 16;

/// How long tasks may take to end before they are aborted.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps connections to all workers whenever this process leads, until `stop`.
pub(crate) async fn supervise(context: WorkerContext, mut leadership: Leadership, stop: Stop) {
    let context = Arc::new(context);
    while !stop.is_cancelled() {
        tokio::select! {
            () = stop.cancelled() => return,
            () = leadership.gained() => {}
        }
        let mut supervisor = WorkerSupervisor::new(Arc::clone(&context), stop.child_token());
        tokio::select! {
            () = stop.cancelled() => {}
            () = leadership.lost() => {}
            () = supervisor.run() => {}
        }
        supervisor.end().await;
    }
}

/// The state of the supervisor during one term of leadership.
pub(super) struct WorkerSupervisor {
    context: Arc<WorkerContext>,
    /// Cancelled at the end of the term.
    term: Stop,
    clusters: ObjectStore<MultiKueueCluster>,
    secrets: ObjectStore<KubeconfigSecret>,
    workers: BTreeMap<Box<str>, WorkerTask>,
    names: BTreeMap<Id, Box<str>>,
    tasks: JoinSet<()>,
}

/// The task of one worker.
struct WorkerTask {
    state: TaskState,
    commands: watch::Sender<WorkerCommand>,
}

impl WorkerSupervisor {
    pub(super) fn new(context: Arc<WorkerContext>, term: Stop) -> Self {
        Self {
            context,
            term,
            clusters: ObjectStore::default(),
            secrets: ObjectStore::default(),
            workers: BTreeMap::new(),
            names: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Watches and reconciles until the term ends.
    pub(super) async fn run(&mut self) {
        let WorkerContext { home, namespace, watches, .. } = &*Arc::clone(&self.context);
        let api = Api::all(home.clone());
        let clusters = Watch::new("worker-clusters", api, Config::default(), watches);
        let api = Api::namespaced(home.clone(), namespace);
        let secrets = Watch::new("worker-secrets", api, Config::default(), watches);
        let (cluster_sender, cluster_changes) = channel(CHANNEL_CAPACITY);
        let (secret_sender, secret_changes) = channel(CHANNEL_CAPACITY);
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

    /// Reconciles after every change.
    async fn follow(
        &mut self,
        mut clusters: Receiver<Change<MultiKueueCluster>>,
        mut secrets: Receiver<Change<KubeconfigSecret>>,
    ) {
        let mut clean = self.context.workers.clean();
        loop {
            let next = self.next();
            tokio::select! {
                Some(change) = clusters.recv() => self.clusters.handle(change),
                Some(change) = secrets.recv() => self.secrets.handle(change),
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended).await,
                Ok(()) = clean.changed() => {}
                () = until(next) => {}
            }
            self.reconcile(time::Instant::now().into_std());
        }
    }

    /// Reconciles every MultiKueueCluster that exists or has a task.
    fn reconcile(&mut self, now: Instant) {
        if !self.clusters.listed || !self.secrets.listed {
            return;
        }
        self.update_claims();
        let keep_for = self.context.keep_for;
        let names: BTreeSet<Box<str>> =
            self.clusters.objects.keys().chain(self.workers.keys()).cloned().collect();
        for name in names {
            let state = self.workers.get(&name).map_or(&TaskState::None, |task| &task.state);
            let cluster = self.clusters.objects.get(&name);
            let clean = self.context.workers.is_clean(&name);
            let retirement = Retirement { now, keep_for, clean };
            let secret = |secret: &str| self.secrets.objects.get(secret);
            let step = reconcile(state, cluster, secret, retirement);
            self.execute(&name, step);
        }
    }

    /// Updates the claims. A MultiKueueCluster with a task still uses its cluster.
    fn update_claims(&self) {
        let mut claims = self.context.claims.lock();
        for (name, cluster) in &self.clusters.objects {
            claims.update(name, cluster);
        }
        claims.retain(|name| {
            self.clusters.objects.contains_key(name) || self.workers.contains_key(name)
        });
    }

    fn execute(&mut self, name: &str, step: SupervisorStep) {
        match (step, self.workers.get_mut(name)) {
            (SupervisorStep::Update(target), None) => self.begin(name, target),
            (SupervisorStep::Update(target), Some(task)) => task.update(target),
            (SupervisorStep::Retire(until), Some(task)) => task.retire(until),
            (SupervisorStep::End, Some(task)) => task.end(),
            (SupervisorStep::Keep | SupervisorStep::Retire(_) | SupervisorStep::End, _) => {}
        }
    }

    fn begin(&mut self, name: &str, target: TargetConnection) {
        let (commands, receiver) = watch::channel(WorkerCommand::Connect(target.clone()));
        let worker = WorkerLoop::new(name, Arc::clone(&self.context));
        let task = self.tasks.spawn(worker.run(receiver, self.term.clone()));
        self.names.insert(task.id(), name.into());
        self.workers
            .insert(name.into(), WorkerTask { state: TaskState::Running(target), commands });
    }

    /// Handles the end of a task. After a panic the supervisor reports the connection as lost in place of the task.
    async fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let Some(name) = self.names.remove(&id) else {
            return;
        };
        self.workers.remove(&name);
        if let Err(error) = ended {
            tracing::error!(cluster = &*name, %error, "the task of a worker failed");
            self.context.workers.set(&name, None);
            let link = lost(CLIENT_CONNECTION_FAILED, "the connection failed".to_owned());
            let link = ManagerInput::Worker(name.clone(), WorkerInput::Connection(link));
            let _ = self.context.inputs.send(link).await;
        }
        let _ = self.context.inputs.send(ManagerInput::Worker(name, WorkerInput::GivenUp)).await;
    }

    /// The time at which the next retiring task ends.
    fn next(&self) -> Option<Instant> {
        let retired = |task: &WorkerTask| match task.state {
            TaskState::Retiring(_, until) => Some(until),
            TaskState::None | TaskState::Running(_) | TaskState::Ending => None,
        };
        self.workers.values().filter_map(retired).min()
    }

    /// Ends all tasks, so that each reports its connection as lost.
    pub(super) async fn end(mut self) {
        self.term.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if time::timeout(END_TIMEOUT, all).await.is_err() {
            tracing::warn!("connections to workers did not end in time");
        }
        for name in self.workers.keys() {
            self.context.workers.set(name, None);
        }
    }
}

impl WorkerTask {
    fn update(&mut self, target: TargetConnection) {
        let command = WorkerCommand::Connect(target.clone());
        // A MultiKueueCluster that was recreated unchanged keeps its connection.
        self.commands.send_if_modified(|last| std::mem::replace(last, command.clone()) != command);
        self.state = TaskState::Running(target);
    }

    fn retire(&mut self, until: Instant) {
        if let TaskState::Running(target) = std::mem::take(&mut self.state) {
            self.state = TaskState::Retiring(target, until);
        }
    }

    fn end(&mut self) {
        self.commands.send_replace(WorkerCommand::End);
        self.state = TaskState::Ending;
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
