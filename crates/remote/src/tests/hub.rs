//! The control of a manager that dispatches, between connections and a test. It has listed everything but MultiKueueClusters.

use std::sync::Arc;

use cluster::control::{ManagerControl, ManagerInput, ManagerSettings, WorkerInput};
use config::{Configuration, JobKinds, gates::Gates};
use crds::v1beta2::MultiKueueCluster;
use jobs::Kinds;
use kube::Client;
use leader::{ControlIo, DecisionMetrics, Inputs, Unmeasured, Workers, control_loop};
use runtime::{
    Stop,
    events::{EventMetrics, Reporter, recorder},
    watch::{Change, Key},
    writer::{WriteLimits, WriteMetrics, Writer},
};
use serde_json::json;
use tokio::sync::mpsc::Sender;

use super::TIMEOUT;

/// Starts control. Returns where inputs go. `seen` gets the status of connections, and their end.
pub(super) fn begin(
    home: Client,
    workers: Workers,
    lost_after: &str,
    seen: Sender<ManagerInput>,
) -> Inputs<ManagerInput> {
    let (inputs, mut received) = control_loop::inputs();
    let (to_control, observed) = control_loop::inputs();
    for list in lists() {
        to_control.try_send(list).expect("there is room");
    }
    tokio::spawn(async move {
        while let Some(input) = received.recv().await {
            let copy = match &input {
                ManagerInput::Worker(name, WorkerInput::Connection(link)) => {
                    Some((name, WorkerInput::Connection(link.clone())))
                }
                ManagerInput::Worker(name, WorkerInput::GivenUp) => {
                    Some((name, WorkerInput::GivenUp))
                }
                _ => None,
            };
            if let Some((name, copy)) = copy {
                let _ = seen.send(ManagerInput::Worker(name.clone(), copy)).await;
            }
            let _ = to_control.send(input).await;
        }
    });
    let limits = WriteLimits { max_in_flight: 4, deadline: TIMEOUT };
    let writer = Writer::new(home, "home", limits, WriteMetrics::default());
    let reporter = Reporter { component: "c".to_owned(), instance: "i".to_owned() };
    let (recorder, _) = recorder(writer.clone(), reporter, EventMetrics::default());
    let io = ControlIo {
        home: writer,
        workers,
        recorder,
        measure: Arc::new(Unmeasured),
        decisions: DecisionMetrics::default(),
    };
    let file = format!(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nmultiKueue: {{dispatcherName: sluice.dev/capacity, workerLostTimeout: {lost_after}}}\n"
    );
    let file = Configuration::load(&file, Some("kueue-system")).expect("a configuration");
    let kinds = JobKinds::all(&Kinds::default());
    let settings = ManagerSettings::new(&file, &Gates::default(), &kinds, true);
    tokio::spawn(control_loop::run(ManagerControl::new(settings), observed, io, Stop::new()));
    inputs
}

fn empty<K>() -> Change<K> {
    Change::Reset { objects: Vec::new(), removed: Vec::new() }
}

fn lists() -> Vec<ManagerInput> {
    let mut lists = vec![
        ManagerInput::Namespace(empty()),
        ManagerInput::LimitRange(empty()),
        ManagerInput::RuntimeClass(empty()),
        ManagerInput::PriorityClass(empty()),
        ManagerInput::WorkloadPriorityClass(empty()),
        ManagerInput::ResourceFlavor(empty()),
        ManagerInput::Cohort(empty()),
        ManagerInput::Topology(empty()),
        ManagerInput::Node(empty()),
        ManagerInput::Pod(empty()),
        ManagerInput::AdmissionCheck(empty()),
        ManagerInput::ProvisioningRequestConfig(empty()),
        ManagerInput::ProvisioningRequest(empty()),
        ManagerInput::PodTemplate(empty()),
        ManagerInput::ClusterQueue(empty()),
        ManagerInput::LocalQueue(empty()),
        ManagerInput::Workload(empty()),
        ManagerInput::MultiKueueConfig(empty()),
        ManagerInput::DispatchPolicy(empty()),
    ];
    let kinds = Kinds::default();
    lists.extend((&kinds).into_iter().map(|kind| ManagerInput::Job(kind.clone(), empty())));
    lists
}

/// The list of MultiKueueClusters of these names.
pub(super) fn registered(names: &[&str]) -> ManagerInput {
    let object = |name: &&str| -> MultiKueueCluster {
        let metadata = json!({ "name": name, "uid": name, "resourceVersion": "1" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": {} })).expect("an object")
    };
    let objects = names.iter().map(object).map(Into::into).collect();
    ManagerInput::MultiKueueCluster(Change::Reset { objects, removed: Vec::new() })
}

/// The deletion of a MultiKueueCluster.
pub(super) fn deleted(name: &str) -> ManagerInput {
    let key = Key { namespace: None, name: name.into() };
    ManagerInput::MultiKueueCluster(Change::Delete(key))
}

/// Lists of a worker that has nothing of the manager.
pub(super) fn nothing_there(name: &str) -> Vec<ManagerInput> {
    let kinds = Kinds::default();
    let jobs = (&kinds).into_iter().map(|kind| WorkerInput::Job(kind.clone(), empty()));
    let all = jobs.chain([WorkerInput::Workload(empty()), WorkerInput::Capacity(empty())]);
    all.map(|input| ManagerInput::Worker(name.into(), input)).collect()
}
