//! Runs one task per worker and sends each its target.
//!
//! `cluster::control` decides which workers are connected, kept or dropped; the supervisor follows its plans, the Secrets of
//! the manager's namespace and the files that MultiKueueClusters name, and never waits for a worker. It starts with the first
//! plans, after the Secrets were listed, and runs only while the process leads, because the next leader opens its own
//! connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use cluster::control::{ConnectionPlans, ConnectionStatus, ManagerInput, WorkerInput};
use crds::names::reasons::CLIENT_CONNECTION_FAILED;
use runtime::{
    Stop,
    lease::Leadership,
    watch::{Change, Subscription},
};
use tokio::{
    sync::watch,
    task::{Id, JoinError, JoinSet},
    time,
};

use crate::{
    cluster_profile::ClusterProfileObject,
    context::WorkerContext,
    file_watch::{FileState, FileWatch},
    kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::KubeconfigSecret,
    object_store::ObjectStore,
    reconcile::{
        FoundKubeconfigs, KubeconfigLocation, SupervisorStep, TargetConnection, TaskState,
        location, reconcile,
    },
    worker::{WorkerCommand, WorkerLoop},
};

/// How long tasks may take to end before they are aborted.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps connections to all workers whenever this process leads, until `stop`.
pub async fn supervise(context: WorkerContext, mut leadership: Leadership, stop: Stop) {
    let context = Arc::new(context);
    while !stop.is_cancelled() {
        tokio::select! {
            () = stop.cancelled() => return,
            () = leadership.gained() => {}
        }
        // A new one per term: tasks and targets of a former term are outdated.
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
    secrets: ObjectStore<KubeconfigSecret>,
    profiles: ObjectStore<ClusterProfileObject>,
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
            secrets: ObjectStore::default(),
            profiles: ObjectStore::default(),
            workers: BTreeMap::new(),
            names: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Follows the stores until the term ends.
    pub(super) async fn run(&mut self) {
        let term = self.term.clone();
        tokio::select! {
            () = term.cancelled() => {}
            () = self.follow() => {}
        }
    }

    /// Reconciles after every change.
    async fn follow(&mut self) {
        let mut secrets = self.context.settings.secrets.subscribe();
        let mut profiles = self.context.settings.profiles.as_ref().map(|all| all.store.subscribe());
        let mut plans = self.context.workers.plans();
        let mut files = FileWatch::start(
            self.context.settings.kubeconfig_files.clone(),
            self.term.child_token(),
        );
        loop {
            tokio::select! {
                change = secrets.next() => self.secrets.handle(change),
                change = next_change(profiles.as_mut()) => self.profiles.handle(change),
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended).await,
                Ok(()) = plans.changed() => {}
                () = files.changed() => {}
            }
            // After every event: a changed Secret is another target, an ended task has none.
            let current = plans.borrow_and_update().clone();
            // Before the list every Secret seems to be missing, which would be reported.
            if let Some(plans) = current.filter(|_| self.secrets.listed) {
                files.follow(paths(&plans));
                self.reconcile(&plans, &files);
            }
        }
    }

    /// Reconciles every worker that has a plan or a task.
    fn reconcile(&mut self, plans: &ConnectionPlans, files: &FileWatch) {
        let names: BTreeSet<Box<str>> = plans.keys().chain(self.workers.keys()).cloned().collect();
        for name in names {
            let state = self.workers.get(&name).map_or(&TaskState::None, |task| &task.state);
            let secret = |secret: &str| self.secrets.objects.get(secret).map(|secret| &**secret);
            let found = FoundKubeconfigs {
                secret: &secret,
                file: &|path| files.get(path),
                profile: &|profile| self.profile(profile),
            };
            let step = reconcile(state, plans.get(&name), &found);
            self.execute(&name, step);
        }
    }

    /// What a ClusterProfile gives access to; `None` before they were listed.
    fn profile(&self, name: &str) -> Option<FileState> {
        let Some(profiles) = &self.context.settings.profiles else {
            return Some(Err(KubeconfigRefused::ClusterProfile));
        };
        let profile = self.profiles.objects.get(name).map(|profile| &**profile);
        self.profiles.listed.then(|| profiles.fingerprint(name, profile))
    }

    fn execute(&mut self, name: &str, step: SupervisorStep) {
        match (step, self.workers.get_mut(name)) {
            (SupervisorStep::Update(target), None) => self.begin(name, target),
            (SupervisorStep::Update(target), Some(task)) => task.update(target),
            (SupervisorStep::End, Some(task)) => task.end(),
            (SupervisorStep::Keep | SupervisorStep::End, _) => {}
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
            let message = "the connection failed".to_owned();
            let status = ConnectionStatus::lost(CLIENT_CONNECTION_FAILED, message);
            let input = ManagerInput::Worker(name.clone(), WorkerInput::Connection(status));
            let _ = self.context.inputs.send(input).await;
        }
        // After the loss: control looks for copies on a worker that is not connected any more.
        let _ = self.context.inputs.send(ManagerInput::Worker(name, WorkerInput::GivenUp)).await;
    }

    /// Ends all tasks, so that each reports its connection as lost.
    pub(super) async fn end(mut self) {
        self.term.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if time::timeout(END_TIMEOUT, all).await.is_err() {
            tracing::warn!("connections to workers did not end in time");
        }
        // A task that did not end in time has not removed its writer.
        for name in self.workers.keys() {
            self.context.workers.set(name, None);
        }
    }
}

/// The next change; never without a subscription.
async fn next_change<K: Send + Sync + 'static>(
    subscription: Option<&mut Subscription<K>>,
) -> Change<K> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => std::future::pending().await,
    }
}

/// The files that MultiKueueClusters name.
fn paths(plans: &ConnectionPlans) -> BTreeSet<Box<str>> {
    let wanted = plans.values().filter_map(|plan| plan.target.as_ref());
    let files = wanted.filter_map(|registration| match location(&registration.source) {
        Ok(KubeconfigLocation::File(path)) => Some(path),
        _ => None,
    });
    files.collect()
}

impl WorkerTask {
    fn update(&mut self, target: TargetConnection) {
        let command = WorkerCommand::Connect(target.clone());
        // A MultiKueueCluster that was recreated unchanged keeps its connection.
        self.commands.send_if_modified(|last| std::mem::replace(last, command.clone()) != command);
        self.state = TaskState::Running(target);
    }

    fn end(&mut self) {
        self.commands.send_replace(WorkerCommand::End);
        self.state = TaskState::Ending;
    }
}
