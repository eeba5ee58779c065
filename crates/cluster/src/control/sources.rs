//! The watches that feed a composition.

use std::{fmt::Debug, time::Duration};

use crds::v1alpha1::{ClusterCapacity, DispatchPolicy};
use jobs::Job;
use kube::{Api, Client, Resource};
use runtime::{
    Stop,
    watch::{Change, Config, Guarded, Watch, WatchMetrics},
};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc::channel, task::JoinSet};

use super::{
    control_loop::Inputs,
    input::{AgentInput, ManagerInput, WorkerInput},
};

/// Changes of one kind that may be queued.
const BACKLOG: usize = 256;

/// Starts watches, each in a task of its own.
pub struct Sources<'a, I> {
    /// The cluster that is watched.
    pub client: Client,
    /// Where changes go.
    pub inputs: Inputs<I>,
    /// Counts failures.
    pub metrics: &'a WatchMetrics,
    /// Ends the watches.
    pub stop: Stop,
    /// Where the tasks run.
    pub tasks: &'a mut JoinSet<()>,
}

impl Sources<'_, ManagerInput> {
    /// Everything that a manager observes in its own cluster.
    pub fn start_manager(&mut self, dispatches: bool) {
        self.all("namespaces", ManagerInput::Namespace);
        self.all("limitranges", ManagerInput::LimitRange);
        self.all("runtimeclasses", ManagerInput::RuntimeClass);
        self.all("priorityclasses", ManagerInput::PriorityClass);
        self.all("workloadpriorityclasses", ManagerInput::WorkloadPriorityClass);
        self.all("resourceflavors", ManagerInput::ResourceFlavor);
        self.all("cohorts", ManagerInput::Cohort);
        self.all("admissionchecks", ManagerInput::AdmissionCheck);
        self.all("clusterqueues", ManagerInput::ClusterQueue);
        self.all("localqueues", ManagerInput::LocalQueue);
        self.all("workloads", ManagerInput::Workload);
        self.all::<Job>("jobs", ManagerInput::Job);
        if dispatches {
            self.all("multikueueconfigs", ManagerInput::MultiKueueConfig);
            self.all("multikueueclusters", ManagerInput::MultiKueueCluster);
            self.all::<DispatchPolicy>("dispatchpolicies", ManagerInput::DispatchPolicy);
        }
    }

    /// What a worker has with this origin. Every `gc_interval` a watch looks for changes that it was not sent
    /// (docs/reference/dispatch.md §9). The names of the watches contain that of the worker.
    pub fn start_worker(
        &mut self,
        cluster: &str,
        origin_label: &str,
        gc_interval: Option<Duration>,
    ) {
        // A connection that dies silently is noticed after this time.
        let short = |config: Config| config.timeout(60);
        let ours = || short(Config::default().labels(origin_label));
        let name = |kind: &str| format!("{cluster}/{kind}");
        let clones = self.watch(&name("workloads"), ours()).check_every(gc_interval);
        self.forward(clones, from_worker(cluster, WorkerInput::Workload));
        let jobs = self.watch::<Job>(&name("jobs"), ours()).check_every(gc_interval);
        self.forward(jobs, from_worker(cluster, WorkerInput::Job));
        let reports =
            self.watch::<ClusterCapacity>(&name("clustercapacities"), short(Config::default()));
        self.forward(reports, from_worker(cluster, WorkerInput::Capacity));
    }
}

impl Sources<'_, AgentInput> {
    /// Everything that an agent observes. Workloads and jobs are those with an origin.
    pub fn start_agent(&mut self, origin_label: &str) {
        let ours = || Config::default().labels(origin_label);
        self.start("workloads", ours(), AgentInput::Workload);
        self.start::<Job>("jobs", ours(), AgentInput::Job);
        self.all("nodes", AgentInput::Node);
        self.all("pods", AgentInput::Pod);
        self.all::<ClusterCapacity>("clustercapacities", AgentInput::Capacity);
    }
}

impl<I: Send + 'static> Sources<'_, I> {
    fn all<K>(&mut self, name: &str, wrap: impl Fn(Change<K>) -> I + Send + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        self.start(name, Config::default(), wrap);
    }

    fn start<K>(
        &mut self,
        name: &str,
        config: Config,
        wrap: impl Fn(Change<K>) -> I + Send + 'static,
    ) where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let watch = self.watch(name, config);
        self.forward(watch, wrap);
    }

    fn watch<K>(&self, name: &str, config: Config) -> Watch<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let api: Api<Guarded<K>> = Api::all(self.client.clone());
        Watch::new(name, api, config, self.metrics)
    }

    fn forward<K>(&mut self, watch: Watch<K>, wrap: impl Fn(Change<K>) -> I + Send + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let (sender, mut changes) = channel(BACKLOG);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            watch.run(sender, stop).await;
        });
        let inputs = self.inputs.clone();
        self.tasks.spawn(async move {
            while let Some(change) = changes.recv().await {
                if inputs.send(wrap(change)).await.is_err() {
                    return;
                }
            }
        });
    }
}

fn from_worker<K>(
    cluster: &str,
    wrap: impl Fn(Change<K>) -> WorkerInput + Send + 'static,
) -> impl Fn(Change<K>) -> ManagerInput + Send + 'static {
    let cluster: Box<str> = cluster.into();
    move |change| ManagerInput::Worker(cluster.clone(), wrap(change))
}
