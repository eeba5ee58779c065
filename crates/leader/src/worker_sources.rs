//! What a manager observes on a worker cluster.
//!
//! Only the control loop reads these objects, so they have no store: changes go straight to the inputs, and a slow control
//! loop slows the watch down.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

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
use tokio::{
    sync::mpsc::{Receiver, channel},
    task::JoinSet,
};

use crate::{
    input_queues::{InputSource, Inputs},
    job_watch::job_watch,
};

/// Changes of one kind that may be queued.
const BACKLOG: usize = 256;

/// A connection that dies silently is noticed after this time, in seconds.
const TIMEOUT: u32 = 60;

/// Confirms that a list came from the cluster that a worker is registered as.
///
/// Contract: the future ends once that was read from the cluster after `listed`. It does not end while another cluster answers, or
/// none: a list is not delivered then. It may be dropped at any time.
///
/// ```ignore
/// impl ListConfirmation for Namespace {
///     fn confirm(&self, listed: Instant) -> BoxFuture<'_, ()> {
///         Box::pin(async move { while self.read_uid().await != self.uid { pause().await } })
///     }
/// }
/// ```
pub trait ListConfirmation: Send + Sync + 'static {
    /// Ends when a list that was complete at `listed` counts.
    fn confirm(&self, listed: Instant) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

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
    /// Confirms lists before they are delivered.
    pub confirmation: Arc<dyn ListConfirmation>,
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
        let clones = Watch::typed(&name("workloads"), Workload::decode_text, &ours, self.metrics);
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
        let reports = Watch::typed(&name, ClusterCapacity::decode_text, &all, self.metrics);
        // Optional: a worker on which the manager may not read them takes no work under ExactlyOnce.
        let label = format!("{GRANTS}=true");
        let leases = leases.with_config(timed(Config::default().labels(&label)));
        let leases =
            Watch::typed(&lease_name, Lease::decode_text, &leases, self.metrics).optional();
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
        let watch = Watch::typed(&cluster_queues, ClusterQueue::decode_text, source, self.metrics);
        self.forward(watch.optional(), WorkerInput::ClusterQueue);
        let watch = Watch::typed(&local_queues, LocalQueue::decode_text, source, self.metrics);
        self.forward(watch.optional(), WorkerInput::LocalQueue);
    }

    fn forward<K: Send + Sync + 'static>(
        &mut self,
        watch: Watch<K>,
        wrap: impl Fn(Change<K>) -> WorkerInput + Send + 'static,
    ) {
        let (sender, changes) = channel(BACKLOG);
        let watch = watch.run(sender, self.stop.clone());
        self.spawn(Box::pin(async move {
            watch.await;
        }));
        let (inputs, cluster) = (self.inputs.clone(), Box::<str>::from(self.cluster));
        let wrap = move |change| ManagerInput::Worker(cluster.clone(), wrap(change));
        let (confirmation, stop) = (self.confirmation.clone(), self.stop.clone());
        self.spawn(Box::pin(async move {
            // A list that was not confirmed ends with the connection.
            stop.run_until_cancelled(deliver(changes, &*confirmation, wrap, inputs)).await;
        }));
    }

    /// Starts a task. Tasks are compiled once per type of their future, so it has one type for all kinds.
    fn spawn(&mut self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.tasks.spawn(task);
    }
}

/// Sends changes on until one of both sides ends; a list only once it is confirmed.
async fn deliver<K, I: InputSource>(
    mut changes: Receiver<Change<K>>,
    confirmation: &dyn ListConfirmation,
    wrap: impl Fn(Change<K>) -> I,
    inputs: Inputs<I>,
) {
    while let Some(change) = changes.recv().await {
        // Another cluster at the same address, or a program between, would say that everything is gone, or that the kind is.
        if change.is_list() {
            confirmation.confirm(Instant::now()).await;
        }
        if inputs.send(wrap(change)).await.is_err() {
            return;
        }
    }
}

fn timed(config: Config) -> Config {
    config.timeout(TIMEOUT)
}

#[cfg(test)]
mod tests {
    use runtime::watch::{Key, Unavailable};
    use tokio::{sync::Notify, time::timeout};

    use super::*;
    use crate::input_queues::inputs;

    /// Confirms once it is notified.
    #[derive(Default)]
    struct Notified(Notify);

    impl ListConfirmation for Notified {
        fn confirm(&self, _: Instant) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            Box::pin(self.0.notified())
        }
    }

    impl InputSource for Change<()> {
        fn worker(&self) -> Option<&str> {
            None
        }
    }

    #[tokio::test]
    async fn a_list_waits_for_its_confirmation_and_what_follows_for_the_list() {
        let confirmation = Arc::new(Notified::default());
        let (sender, changes) = channel::<Change<()>>(BACKLOG);
        let (inputs, mut delivered) = inputs();
        let delivery = {
            let confirmation = confirmation.clone();
            async move { deliver(changes, &*confirmation, |change| change, inputs).await }
        };
        let delivery = tokio::spawn(delivery);
        let key = Key { namespace: None, name: "a".into() };
        sender.send(Change::Delete(key.clone())).await.expect("it runs");
        assert!(matches!(&*delivered.next_inputs().await, [Change::Delete(_)]), "no list");

        let list = Change::Reset { objects: Vec::new(), removed: vec![key.clone()] };
        sender.send(list).await.expect("it runs");
        sender.send(Change::Delete(key)).await.expect("it runs");
        let wait = timeout(Duration::from_millis(20), delivered.next_inputs());
        assert!(wait.await.is_err(), "the list is not confirmed");
        confirmation.0.notify_one();
        let mut both = delivered.next_inputs().await;
        while both.len() < 2 {
            both.extend(delivered.next_inputs().await);
        }
        assert!(matches!(&*both, [Change::Reset { .. }, Change::Delete(_)]), "{both:?}");
        let reason = Unavailable::NotServed;
        sender.send(Change::Unavailable { reason, removed: Vec::new() }).await.expect("it runs");
        let wait = timeout(Duration::from_millis(20), delivered.next_inputs());
        assert!(wait.await.is_err(), "the cluster may serve the kind");
        confirmation.0.notify_one();
        assert!(matches!(&*delivered.next_inputs().await, [Change::Unavailable { .. }]));
        drop(sender);
        delivery.await.expect("it ends with the watch");
    }
}
