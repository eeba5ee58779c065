//! The watches that feed a [`Control`](super::Control).

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

use super::{Input, RemoteInput, Role, task::Inputs};

/// Changes of one kind that may wait.
const BACKLOG: usize = 256;

/// Begins watches, each in a task of its own.
pub struct Sources<'a> {
    /// Whose objects.
    pub client: Client,
    /// Where changes go.
    pub inputs: Inputs,
    /// Counts failures.
    pub metrics: &'a WatchMetrics,
    /// Ends the watches.
    pub stop: Stop,
    /// Where the tasks run.
    pub tasks: &'a mut JoinSet<()>,
}

impl Sources<'_> {
    /// All that a cluster of this role must know.
    pub fn begin(&mut self, role: Role, origin_label: &str) {
        match role {
            Role::Manager { dispatches } => {
                self.queues();
                if dispatches {
                    self.all("multikueueconfigs", Input::MultiKueueConfig);
                    self.all("multikueueclusters", Input::MultiKueueCluster);
                    self.all::<DispatchPolicy>("dispatchpolicies", Input::DispatchPolicy);
                }
            }
            Role::Thin => {
                let ours = || Config::default().labels(origin_label);
                self.follow("workloads", ours(), Input::Workload);
                self.follow::<Job>("jobs", ours(), Input::Job);
                self.all("nodes", Input::Node);
                self.all("pods", Input::Pod);
                self.all::<ClusterCapacity>("clustercapacities", Input::Capacity);
            }
        }
    }

    fn queues(&mut self) {
        self.all("namespaces", Input::Namespace);
        self.all("limitranges", Input::LimitRange);
        self.all("runtimeclasses", Input::RuntimeClass);
        self.all("priorityclasses", Input::PriorityClass);
        self.all("workloadpriorityclasses", Input::WorkloadPriorityClass);
        self.all("resourceflavors", Input::ResourceFlavor);
        self.all("cohorts", Input::Cohort);
        self.all("admissionchecks", Input::AdmissionCheck);
        self.all("clusterqueues", Input::ClusterQueue);
        self.all("localqueues", Input::LocalQueue);
        self.all("workloads", Input::Workload);
        self.all::<Job>("jobs", Input::Job);
    }

    /// What a worker has of ours, looked at so often for what its watches may have lost (docs/reference/dispatch.md §9). The manager's
    /// name for it is in the watches' names.
    pub fn worker(&mut self, cluster: &str, origin_label: &str, check_every: Option<Duration>) {
        // A connection that dies in silence is noticed after this time.
        let near = |config: Config| config.timeout(60);
        let ours = || near(Config::default().labels(origin_label));
        let name = |kind: &str| format!("{cluster}/{kind}");
        let clones = self.watch(&name("workloads"), ours()).check_every(check_every);
        self.tell(clones, from_worker(cluster, RemoteInput::Workload));
        let jobs = self.watch::<Job>(&name("jobs"), ours()).check_every(check_every);
        self.tell(jobs, from_worker(cluster, RemoteInput::Job));
        let reports =
            self.watch::<ClusterCapacity>(&name("clustercapacities"), near(Config::default()));
        self.tell(reports, from_worker(cluster, RemoteInput::Capacity));
    }

    fn all<K>(&mut self, name: &str, wrap: impl Fn(Change<K>) -> Input + Send + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        self.follow(name, Config::default(), wrap);
    }

    fn follow<K>(
        &mut self,
        name: &str,
        config: Config,
        wrap: impl Fn(Change<K>) -> Input + Send + 'static,
    ) where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let watch = self.watch(name, config);
        self.tell(watch, wrap);
    }

    fn watch<K>(&self, name: &str, config: Config) -> Watch<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let api: Api<Guarded<K>> = Api::all(self.client.clone());
        Watch::new(name, api, config, self.metrics)
    }

    fn tell<K>(&mut self, watch: Watch<K>, wrap: impl Fn(Change<K>) -> Input + Send + 'static)
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
    wrap: impl Fn(Change<K>) -> RemoteInput + Send + 'static,
) -> impl Fn(Change<K>) -> Input + Send + 'static {
    let cluster: Box<str> = cluster.into();
    move |change| Input::Remote(cluster.clone(), wrap(change))
}
