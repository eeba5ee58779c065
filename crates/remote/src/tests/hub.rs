//! The control of a manager that dispatches, between connections and a test. It has listed everything but MultiKueueClusters.

use std::sync::Arc;

use cluster::control::{
    Control, Decisions, ManagerControl, ManagerInput, ManagerSettings, Ticket, WorkerInput,
};
use config::{Configuration, JobKinds, gates::Gates};
use crds::v1beta2::MultiKueueCluster;
use jiff::Timestamp;
use jobs::Kinds;
use kube::Client;
use leader::{
    AdmissionExplanations, ControlIo, DecisionMetrics, Inputs, Unmeasured, Workers, control_loop,
    inputs,
};
use runtime::{
    Stop,
    events::{EventMetrics, Reporter, recorder},
    watch::{Change, Key},
    writer::{WriteLimits, WriteMetrics, WriteOutcome, Writer},
};
use serde_json::json;
use tokio::sync::mpsc::Sender;

use super::TIMEOUT;

/// Control, with a copy of its inputs about connections for a test.
struct SeenControl {
    control: ManagerControl,
    seen: Sender<ManagerInput>,
}

impl Control for SeenControl {
    type Input = ManagerInput;

    fn observe(&mut self, input: ManagerInput, now: Timestamp) {
        let copy = match &input {
            ManagerInput::Worker(name, WorkerInput::Connection(status)) => {
                Some((name, WorkerInput::Connection(status.clone())))
            }
            ManagerInput::Worker(name, WorkerInput::GivenUp) => Some((name, WorkerInput::GivenUp)),
            _ => None,
        };
        if let Some((name, copy)) = copy {
            // A test that has ended sees nothing.
            let _ = self.seen.try_send(ManagerInput::Worker(name.clone(), copy));
        }
        self.control.observe(input, now);
    }

    fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        self.control.answered(ticket, answer, now);
    }

    fn decide(&mut self, now: Timestamp) -> Decisions {
        self.control.decide(now)
    }

    fn dump(&self) -> String {
        self.control.dump()
    }
}

/// Starts control. Returns where inputs go. `seen` gets the status of connections, and their end.
pub(super) fn begin(
    home: Client,
    workers: Workers,
    lost_after: &str,
    seen: Sender<ManagerInput>,
) -> Inputs<ManagerInput> {
    let (inputs, queues) = inputs();
    for list in lists() {
        inputs.try_send(list).expect("there is room");
    }
    let limits = WriteLimits { max_in_flight: 4, deadline: TIMEOUT };
    let writer = Writer::new(home, "home", limits, WriteMetrics::default());
    let reporter = Reporter { component: "c".to_owned(), instance: "i".to_owned() };
    let (recorder, _) = recorder(writer.clone(), reporter, EventMetrics::default());
    let io = ControlIo {
        home: writer,
        workers,
        recorder,
        measure: Arc::new(Unmeasured),
        explanations: AdmissionExplanations::default(),
        decisions: DecisionMetrics::default(),
    };
    let file = format!(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nmultiKueue: {{dispatcherName: sluice.dev/capacity, workerLostTimeout: {lost_after}}}\n"
    );
    let file = Configuration::load(&file, Some("kueue-system")).expect("a configuration");
    let kinds = JobKinds::all(&Kinds::default());
    let settings = ManagerSettings::new(&file, &Gates::default(), &kinds, true);
    let control = SeenControl { control: ManagerControl::new(settings), seen };
    tokio::spawn(control_loop::run(control, queues, io, Stop::new()));
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
