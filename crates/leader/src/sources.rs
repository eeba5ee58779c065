//! What a composition observes in its own cluster.
//!
//! Every kind has one store, which its watch fills from the start of the process. The control loop of a leader subscribes to
//! them, so that a process that gains the lease needs no list.
//!
//! A store lags behind the API server by the delay of its watch, as upstream's informers do: the first decisions of a leader
//! may miss the last writes of the former one. No such decision takes effect on an object that the former leader wrote: an
//! update carries the resourceVersion that it was decided on and is refused (409), a create meets the object that exists, and
//! a deletion names a uid. The object is evaluated again when the watch has delivered its newer version.
//!
//! Writes to workers carry the epoch of the Workload and the term of the leader. Within that delay a copy of a higher epoch
//! than the known one is left alone.

use std::pin::Pin;

use cluster::control::{
    AgentInput, ManagerInput, NodeReachability, Observed, QueueInput, REFUSED_PODS_FIELDS,
    WatchedElasticPod, WatchedTerminatingPod,
};
use crds::{
    decode::Decode,
    names::{
        INCARNATION_CONFIG_MAP, MANAGED, PROVISIONING_CONTROLLER,
        annotations::ELASTIC_JOB,
        labels::{GRANTS, POD_SET},
    },
    v1alpha1::{ClusterCapacity, DispatchPolicy},
    v1beta2::{AdmissionCheck, Topology, Workload},
};
use jobs::{JobObject, Kind, Kinds};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, LimitRange},
    node::v1::RuntimeClass,
};
use kube::Resource;
use provisioning::{EntryTemplate, ProvisioningRequest};
use runtime::watch::{Change, Config, Store, Stores, Unavailable, Watch};
use tokio::task::JoinSet;

use crate::{
    input_queues::{InputSource, Inputs},
    job_watch::members_watch,
};

/// The stores that feed a composition.
pub struct Sources<I> {
    feeds: Vec<Feed<I>>,
}

/// Features of a manager that need watches of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservedFeatures {
    /// The gate TopologyAwareScheduling.
    pub topologies: bool,
    /// The gate ElasticJobsViaWorkloadSlices.
    pub slices: bool,
    /// The gate FailureRecoveryPolicy.
    pub failure_recovery: bool,
}

/// Subscribes to a store and passes every change on.
pub(crate) type Feed<I> =
    Box<dyn FnOnce(Inputs<I>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

impl Sources<ManagerInput> {
    /// Everything that a manager observes in its own cluster. `dispatch` is the manager's namespace, if it dispatches to
    /// workers.
    #[must_use]
    pub fn manager(
        stores: &mut Stores,
        kinds: &Kinds,
        dispatch: Option<&str>,
        features: ObservedFeatures,
    ) -> Self {
        let mut sources = Self { feeds: Vec::new() };
        sources.all(stores, ManagerInput::Namespace);
        sources.all(stores, ManagerInput::LimitRange);
        sources.all(stores, ManagerInput::RuntimeClass);
        sources.all(stores, ManagerInput::PriorityClass);
        sources.all(stores, ManagerInput::WorkloadPriorityClass);
        sources.all(stores, ManagerInput::ResourceFlavor);
        sources.all(stores, ManagerInput::Cohort);
        sources.all(stores, ManagerInput::Topology);
        let ObservedFeatures { topologies, slices, failure_recovery } = features;
        sources.of_topologies("topologies/nodes", stores, topologies, ManagerInput::Node);
        sources.of_topologies("topologies/pods", stores, topologies, ManagerInput::Pod);
        if slices {
            let workloads = stores.of::<Workload>(Workload::decode_text);
            sources.of_slices(stores, workloads, ManagerInput::ElasticPod);
        }
        if failure_recovery {
            sources.of_failure_recovery(stores);
        }
        sources.all(stores, ManagerInput::AdmissionCheck);
        sources.all(stores, ManagerInput::ProvisioningRequestConfig);
        sources.provisioning(stores);
        sources.all(stores, ManagerInput::ClusterQueue);
        sources.all(stores, ManagerInput::LocalQueue);
        sources.all(stores, ManagerInput::Workload);
        let source = stores.source();
        let wraps = (ManagerInput::Job as fn(_, _) -> _, ManagerInput::LookedUp as fn(_, _) -> _);
        sources.jobs(stores, kinds, &source, wraps);
        sources.members(stores, kinds, ManagerInput::Members);
        if let Some(namespace) = dispatch {
            sources.all(stores, ManagerInput::MultiKueueConfig);
            sources.all(stores, ManagerInput::MultiKueueCluster);
            sources.all::<DispatchPolicy>(stores, ManagerInput::DispatchPolicy);
            // Only this object: its namespace may have many large ConfigMaps.
            let name = format!("metadata.name={INCARNATION_CONFIG_MAP}");
            let record = stores.source().in_namespace(namespace);
            let record = record.with_config(Config::default().fields(&name));
            let record =
                Watch::typed("incarnation", ConfigMap::decode_text, &record, stores.metrics());
            sources.feed(&stores.start(record), ManagerInput::Incarnation);
        }
        sources
    }

    /// Pods that are being deleted, and whether their nodes are reachable.
    fn of_failure_recovery(&mut self, stores: &mut Stores) {
        let (source, metrics) = (stores.source(), stores.metrics());
        // Optional: without the right to read them, such pods stay and all else goes on.
        let name = "failure-recovery/nodes";
        let nodes = Watch::typed(name, Observed::<NodeReachability>::decode_text, &source, metrics);
        let name = "failure-recovery/pods";
        let pods =
            Watch::typed(name, Observed::<WatchedTerminatingPod>::decode_text, &source, metrics);
        let (nodes, pods) = (nodes.optional(), pods.optional());
        self.feed(&stores.start(nodes), ManagerInput::NodeReachability);
        self.feed(&stores.start(pods), ManagerInput::TerminatingPod);
    }
}

impl Sources<ManagerInput> {
    /// ProvisioningRequests and their templates, from the time at which a check makes them: most clusters have no autoscaler that
    /// serves them.
    fn provisioning(&mut self, stores: &mut Stores) {
        let requests = provisioning_requests(stores);
        let checks = stores.of::<AdmissionCheck>(AdmissionCheck::decode_text);
        let first = (checks.clone(), is_provisioning as fn(&AdmissionCheck) -> bool);
        self.after_first(first, stores, requests.optional(), ManagerInput::ProvisioningRequest);
        let templates = managed_templates(stores);
        let first = (checks, is_provisioning as fn(&AdmissionCheck) -> bool);
        self.after_first(first, stores, templates.optional(), ManagerInput::PodTemplate);
    }
}

impl Sources<AgentInput> {
    /// Everything that an agent observes. Workloads and jobs are those with an origin; `namespace` has its Leases.
    #[must_use]
    pub fn agent(stores: &mut Stores, kinds: &Kinds, origin_label: &str, namespace: &str) -> Self {
        let mut sources = Self { feeds: Vec::new() };
        // Optional: without the right to read them, the agent counts what the templates of pods request.
        sources.readable::<LimitRange>(stores, AgentInput::LimitRange);
        sources.readable::<RuntimeClass>(stores, AgentInput::RuntimeClass);
        let ours = stores.source().with_config(Config::default().labels(origin_label));
        let clones = Watch::typed("workloads", Workload::decode_text, &ours, stores.metrics());
        let clones = stores.start(clones);
        sources.feed(&clones, AgentInput::Workload);
        sources.of_slices(stores, clones, AgentInput::ElasticPod);
        let wraps = (AgentInput::Job as fn(_, _) -> _, AgentInput::LookedUp as fn(_, _) -> _);
        sources.jobs(stores, kinds, &ours, wraps);
        sources.members(stores, kinds, AgentInput::Members);
        sources.all(stores, AgentInput::Node);
        sources.all(stores, AgentInput::Pod);
        sources.all::<ClusterCapacity>(stores, AgentInput::Capacity);
        let grants = Config::default().labels(&format!("{GRANTS}=true"));
        let leases = stores.source().in_namespace(namespace).with_config(grants);
        let leases = Watch::typed("leases", Lease::decode_text, &leases, stores.metrics());
        sources.feed(&stores.start(leases), AgentInput::Lease);
        // Optional: without the right to read Events, refused pods wait for the PodsReady timeout.
        let refused = stores.source().with_config(Config::default().fields(REFUSED_PODS_FIELDS));
        let refused =
            Watch::typed("events", Decode::decode_text, &refused, stores.metrics()).optional();
        sources.feed(&stores.start(refused), AgentInput::RefusedPods);
        sources.autoscalers(stores);
        sources
    }

    /// Adds what an agent observes that asks an autoscaler for nodes. Optional: a cluster may have no such kind, or the agent no right.
    #[must_use]
    pub fn with_provisioning(mut self, stores: &mut Stores) -> Self {
        let requests = provisioning_requests(stores).optional();
        self.feed(&stores.start(requests), AgentInput::ProvisioningRequest);
        let templates = managed_templates(stores).optional();
        self.feed(&stores.start(templates), AgentInput::PodTemplate);
        self
    }

    /// Adds what an agent observes that admits by the queues of its cluster.
    #[must_use]
    pub fn with_queues(mut self, stores: &mut Stores) -> Self {
        self.all(stores, |change| AgentInput::Queue(QueueInput::Namespace(change)));
        self.all(stores, |change| AgentInput::Queue(QueueInput::ResourceFlavor(change)));
        self.all(stores, |change| AgentInput::Queue(QueueInput::Cohort(change)));
        self.all(stores, |change| AgentInput::Queue(QueueInput::AdmissionCheck(change)));
        self.all(stores, |change| AgentInput::Queue(QueueInput::ClusterQueue(change)));
        self.all(stores, |change| AgentInput::Queue(QueueInput::LocalQueue(change)));
        self
    }
}

impl<I: InputSource> Sources<I> {
    /// Subscribes to every store, in tasks of their own.
    pub fn start(self, inputs: &Inputs<I>, tasks: &mut JoinSet<()>) {
        for feed in self.feeds {
            tasks.spawn(feed(inputs.clone()));
        }
    }

    /// Pods of elastic jobs, from the time at which one has a Workload: most clusters have none, and many pods.
    fn of_slices(
        &mut self,
        stores: &mut Stores,
        workloads: Store<Workload>,
        wrap: fn(Change<Observed<WatchedElasticPod>>) -> I,
    ) {
        // Every pod that a Workload started has this label.
        let started = stores.source().with_config(Config::default().labels(POD_SET));
        let watch =
            Watch::typed("slices/pods", Decode::decode_text, &started, stores.metrics()).optional();
        self.after_first((workloads, is_slice), stores, watch, wrap);
    }

    /// A store of objects that matter only beside a Topology. It is filled from the time at which one exists: most clusters have
    /// none, and many pods. Until then there is nothing of the kind.
    fn of_topologies<K>(
        &mut self,
        name: &str,
        stores: &mut Stores,
        enabled: bool,
        wrap: fn(Change<K>) -> I,
    ) where
        K: Resource<DynamicType = ()> + Decode + Send + Sync + 'static,
    {
        if !enabled {
            self.feeds.push(Box::new(move |inputs| Box::pin(send_nothing(inputs, wrap))));
            return;
        }
        let topologies = stores.of::<Topology>(Topology::decode_text);
        // Optional: without the right to read them, topologies have no nodes and all else goes on.
        let watch =
            Watch::typed(name, K::decode_text, &stores.source(), stores.metrics()).optional();
        self.after_first((topologies, |_| true), stores, watch, wrap);
    }

    /// A store that is filled from the time at which an object of another one matters. Until then there is nothing of the kind.
    fn after_first<T, K>(
        &mut self,
        (first, matters): (Store<T>, fn(&T) -> bool),
        stores: &mut Stores,
        watch: Watch<K>,
        wrap: fn(Change<K>) -> I,
    ) where
        T: Send + Sync + 'static,
        K: Send + Sync + 'static,
    {
        let store = stores.start_after(until_some(&first, matters), watch);
        self.feeds.push(Box::new(move |inputs| {
            Box::pin(async move {
                let mut changes = store.subscribe();
                if !lists_some(&first, matters).await {
                    send_nothing(inputs.clone(), wrap).await;
                }
                while inputs.send(wrap(changes.next().await)).await.is_ok() {}
            })
        }));
    }

    /// A store for the pods of the sets of each kind. They are no members of a group yet, so that no other store has them.
    fn members(
        &mut self,
        stores: &mut Stores,
        kinds: &Kinds,
        wrap: fn(Kind, Change<JobObject>) -> I,
    ) {
        for kind in kinds {
            let Some(members) = kind.members() else { continue };
            let (kind, prefix) = (kind.clone(), format!("{}/", kind.plural()));
            let source = stores.source();
            let watch = members_watch(&prefix, members.label(), &source, stores.metrics());
            self.feed(&stores.start(watch), move |change| wrap(kind.clone(), change));
        }
    }

    fn all<K>(&mut self, stores: &mut Stores, wrap: fn(Change<K>) -> I)
    where
        K: Resource<DynamicType = ()> + Decode + Send + Sync + 'static,
    {
        self.feed(&stores.of::<K>(K::decode_text), wrap);
    }

    /// All objects of a kind, or none as long as they may not be read.
    fn readable<K>(&mut self, stores: &mut Stores, wrap: fn(Change<K>) -> I)
    where
        K: Resource<DynamicType = ()> + Decode + Send + Sync + 'static,
    {
        let name = K::plural(&());
        let watch = Watch::typed(&name, K::decode_text, &stores.source(), stores.metrics());
        self.feed(&stores.start(watch.optional()), wrap);
    }

    pub(crate) fn push(&mut self, feed: Feed<I>) {
        self.feeds.push(feed);
    }

    pub(crate) fn feed<K: Send + Sync + 'static>(
        &mut self,
        store: &Store<K>,
        wrap: impl Fn(Change<K>) -> I + Send + Sync + 'static,
    ) {
        let store = store.clone();
        self.feeds.push(Box::new(move |inputs| {
            Box::pin(async move {
                let mut changes = store.subscribe();
                // Ends with the control loop, which drops the receiver.
                while inputs.send(wrap(changes.next().await)).await.is_ok() {}
            })
        }));
    }
}

fn provisioning_requests(stores: &Stores) -> Watch<ProvisioningRequest> {
    let (source, decode) = (stores.source(), ProvisioningRequest::decode_text);
    Watch::typed("provisioningrequests", decode, &source, stores.metrics())
}

/// Other templates are none of ours, and there may be many.
fn managed_templates(stores: &Stores) -> Watch<EntryTemplate> {
    let managed = Config::default().labels(&format!("{MANAGED}=true"));
    let source = stores.source().with_config(managed);
    Watch::typed("podtemplates", EntryTemplate::decode_text, &source, stores.metrics())
}

/// Whether a check makes ProvisioningRequests.
fn is_provisioning(check: &AdmissionCheck) -> bool {
    check.spec.controller_name == PROVISIONING_CONTROLLER
}

/// Whether a Workload is a slice of an elastic job.
fn is_slice(workload: &Workload) -> bool {
    let annotations = workload.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(ELASTIC_JOB))
}

/// Ends when a store has an object that matters.
pub(crate) fn until_some<T: Send + Sync + 'static>(
    store: &Store<T>,
    matters: fn(&T) -> bool,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let mut changes = store.subscribe();
    Box::pin(async move { while !has_some(&changes.next().await, matters) {} })
}

/// Whether the first list of a store, or a change before it, has an object that matters.
pub(crate) async fn lists_some<T: Send + Sync + 'static>(
    store: &Store<T>,
    matters: fn(&T) -> bool,
) -> bool {
    let mut changes = store.subscribe();
    loop {
        let change = changes.next().await;
        if has_some(&change, matters) {
            return true;
        }
        if change.is_list() {
            return false;
        }
    }
}

/// Whether a change shows an object that matters.
pub(crate) fn has_some<K>(change: &Change<K>, matters: fn(&K) -> bool) -> bool {
    match change {
        Change::Apply(object) => matters(object),
        Change::Reset { objects, .. } => objects.iter().any(|object| matters(object)),
        Change::Delete(_) | Change::Unavailable { .. } => false,
    }
}

/// Says that nothing of a kind can be observed.
async fn send_nothing<I: InputSource, K>(inputs: Inputs<I>, wrap: fn(Change<K>) -> I) {
    let nothing = Change::Unavailable { reason: Unavailable::NotServed, removed: Vec::new() };
    // An error means that the control loop has ended.
    let _ = inputs.send(wrap(nothing)).await;
}
