//! What a manager observes on a worker cluster.
//!
//! Only the control loop reads these objects, so they have no store: changes go straight to the inputs, and a slow control
//! loop slows the watch down.

use std::{pin::Pin, time::Duration};

use cluster::control::{ManagerInput, WorkerInput};
use crds::{
    decode::Decode,
    names::labels::GRANTS,
    v1alpha1::ClusterCapacity,
    v1beta2::{ClusterQueue, LocalQueue, Workload},
};
use jobs::Kinds;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use runtime::{
    Stop,
    watch::{Change, Config, Watch, WatchMetrics, WatchSource},
};
use tokio::{sync::mpsc::channel, task::JoinSet};

use crate::{control_loop::Inputs, job_watch::job_watch};

/// Changes of one kind that may be queued.
const BACKLOG: usize = 256;

/// A connection that dies silently is noticed after this time, in seconds.
const TIMEOUT: u32 = 60;

/// Starts the watches of one worker, each in a task of its own.
pub struct WorkerSources<'a> {
    /// Kinds of jobs that are watched.
    pub kinds: &'a Kinds,
    /// The name of the worker.
    pub cluster: &'a str,
    /// The namespace of the Leases between its agent and the manager.
    pub namespace: &'a str,
    /// Whether its queues are watched.
    pub queues: bool,
    /// The cluster that is watched.
    pub client: Client,
    /// Where changes go.
    pub inputs: Inputs<ManagerInput>,
    /// Counts failures.
    pub metrics: &'a WatchMetrics,
    /// Ends the watches.
    pub stop: Stop,
    /// Where the tasks run.
    pub tasks: &'a mut JoinSet<()>,
}

impl WorkerSources<'_> {
    /// What a worker has with this origin. Every `gc_interval` a watch looks for changes that it was not sent
    /// (docs/reference/dispatch.md §9). The names of the watches contain that of the worker.
    pub fn start(&mut self, origin_label: &str, gc_interval: Option<Duration>) {
        let all = WatchSource::all(self.client.clone());
        let ours = all.clone().with_config(timed(Config::default().labels(origin_label)));
        let name = |kind: &str| format!("{}/{kind}", self.cluster);
        let clones = Watch::of(&name("workloads"), Workload::decode, &ours, self.metrics);
        let jobs: Vec<_> = self
            .kinds
            .into_iter()
            .map(|kind| (kind.clone(), job_watch(&name(""), kind, &ours, self.metrics)))
            .collect();
        let leases = all.clone().in_namespace(self.namespace);
        let lease_name = name("leases");
        let all = all.with_config(timed(Config::default()));
        // A report belongs to the cluster and has no origin.
        let name = name("clustercapacities");
        let reports = Watch::of(&name, ClusterCapacity::decode, &all, self.metrics);
        // Optional: a worker on which the manager may not read them takes no work under ExactlyOnce.
        let label = format!("{GRANTS}=true");
        let leases = leases.with_config(timed(Config::default().labels(&label)));
        let leases = Watch::of(&lease_name, Lease::decode, &leases, self.metrics).optional();
        self.forward(clones.check_every(gc_interval), WorkerInput::Workload);
        for (kind, watch) in jobs {
            let wrap = move |change| WorkerInput::Job(kind.clone(), change);
            self.forward(watch.check_every(gc_interval), wrap);
        }
        // Without a check: the next report stands in for one that was lost.
        self.forward(reports, WorkerInput::Capacity);
        self.forward(leases, WorkerInput::Lease);
        if self.queues {
            self.start_queues(&all);
        }
    }

    /// Starts the watches of queues. Optional: a thin worker has none.
    fn start_queues(&mut self, source: &WatchSource) {
        let name = |kind: &str| format!("{}/{kind}", self.cluster);
        let (cluster_queues, local_queues) = (name("clusterqueues"), name("localqueues"));
        let watch = Watch::of(&cluster_queues, ClusterQueue::decode, source, self.metrics);
        self.forward(watch.optional(), WorkerInput::ClusterQueue);
        let watch = Watch::of(&local_queues, LocalQueue::decode, source, self.metrics);
        self.forward(watch.optional(), WorkerInput::LocalQueue);
    }

    fn forward<K: Send + Sync + 'static>(
        &mut self,
        watch: Watch<K>,
        wrap: impl Fn(Change<K>) -> WorkerInput + Send + 'static,
    ) {
        let (sender, mut changes) = channel(BACKLOG);
        let watch = watch.run(sender, self.stop.clone());
        self.spawn(Box::pin(async move {
            watch.await;
        }));
        let (inputs, cluster) = (self.inputs.clone(), Box::<str>::from(self.cluster));
        self.spawn(Box::pin(async move {
            while let Some(change) = changes.recv().await {
                let input = ManagerInput::Worker(cluster.clone(), wrap(change));
                if inputs.send(input).await.is_err() {
                    return;
                }
            }
        }));
    }

    /// Starts a task. Tasks are compiled once per type of their future, so it has one type for all kinds.
    fn spawn(&mut self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.tasks.spawn(task);
    }
}

fn timed(config: Config) -> Config {
    config.timeout(TIMEOUT)
}
