//! What is measured of a Workload's life and of its queue.

use std::time::Duration;

use crds::names::UNTRACKED_METRIC_VALUE;
use jiff::SignedDuration;

use super::{
    cluster::Cluster,
    dispatched::{connect, dispatching, east, hub_job},
    fleet::StatusScope,
    measurement::{
        LabelledNumbers, Measurement, QueueNumbers, UnadmittedLabels, WorkerMeasurement,
        WorkloadLabels,
    },
    *,
};

fn labels() -> WorkloadLabels {
    WorkloadLabels {
        cluster_queue: "cq".into(),
        local_queue: ("ns".into(), "lq".into()),
        priority_class: String::new(),
        custom: Vec::new(),
    }
}

/// What is measured until nothing is written any more, without numbers of queues.
fn settled(cluster: &mut Cluster) -> Vec<Measurement> {
    cluster.settle();
    let all = std::mem::take(&mut cluster.measurements);
    let of_workload = |one: &Measurement| {
        !matches!(one, Measurement::ClusterQueue(..) | Measurement::Attempt { .. })
    };
    all.into_iter().filter(of_workload).collect()
}

fn finished_workloads(count: usize) -> Measurement {
    let local_queue = labels().local_queue;
    Measurement::FinishedWorkloads { cluster_queue: "cq".into(), local_queue, count }
}

#[test]
fn transitions_are_measured_once() {
    let mut cluster = Cluster::new();
    let none = Duration::ZERO;
    cluster.workload("train", 2, &json!({}));
    assert_eq!(
        settled(&mut cluster),
        [
            unadmitted("NoReservation", "PendingEvaluation", 1),
            Measurement::QuotaReserved(labels(), none),
            Measurement::Admitted { labels: labels(), waited: none, checks: None },
            unadmitted("NoReservation", "PendingEvaluation", 0),
        ]
    );
    cluster.wait(7);
    let finished =
        json!({"type": "Finished", "status": "True", "reason": "Succeeded", "message": ""});
    let mut conditions = cluster.workloads["train"]["status"]["conditions"].clone();
    conditions.as_array_mut().expect("conditions").push(finished);
    cluster.workload("train", 2, &json!({"status": {"conditions": conditions}}));
    let executed = Some(Duration::from_secs(7));
    assert_eq!(
        settled(&mut cluster),
        [Measurement::Finished { labels: labels(), executed }, finished_workloads(1)]
    );
    cluster.workload("train", 2, &json!({"metadata": {"labels": {"seen": "again"}}}));
    assert_eq!(settled(&mut cluster), []);
}

/// So many seconds after the admission in the ClusterQueue `cq`.
pub(super) fn gate_removed(gate: &'static str, is_group: bool, seconds: u64) -> Measurement {
    let took = Duration::from_secs(seconds);
    Measurement::GateRemoved { gate, cluster_queue: "cq".to_owned(), is_group, took }
}

#[test]
fn a_workload_of_an_earlier_process_is_counted_without_its_transitions() {
    let mut cluster = Cluster::new();
    let conditions = json!([
        {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""},
        {"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""},
        {"type": "Finished", "status": "True", "reason": "Succeeded", "message": ""},
    ]);
    cluster.workload("train", 2, &json!({"status": {"conditions": conditions}}));
    assert_eq!(settled(&mut cluster), [finished_workloads(1)]);
}

#[test]
fn an_eviction_is_measured_by_reason_and_cause_and_its_end_by_time() {
    let mut cluster = Cluster::new();
    cluster.workload("train", 2, &json!({}));
    settled(&mut cluster);
    cluster.wait(3);
    cluster.workload("train", 2, &json!({"spec": {"active": false}}));
    let measured = settled(&mut cluster);
    let evicted = measured.iter().find_map(|one| match one {
        Measurement::Evicted { eviction, first, .. } => Some((eviction.reason.as_str(), *first)),
        _ => None,
    });
    assert_eq!(evicted, Some(("Deactivated", true)), "{measured:?}");
}

#[test]
fn numbers_of_a_queue_follow_its_workloads() {
    let mut cluster = Cluster::new();
    let admitted = json!({"status": workload()["status"]});
    cluster.workload("small", 2, &admitted).workload("large", 7, &json!({})).settle();
    let numbers = cluster.measurements.iter().rev().find_map(|one| match one {
        Measurement::ClusterQueue(queue, local) => Some((queue, local)),
        _ => None,
    });
    let (queue, local) = numbers.expect("numbers of the queue");
    let expected =
        QueueNumbers { inadmissible: 1, reserving: 1, admitted: 1, ..QueueNumbers::default() };
    assert_eq!((&queue.workloads, &local[0].workloads), (&expected, &expected));
    assert_eq!((queue.classes, queue.status), ((0, 1), "active"));
    let cpu = &queue.resources[0];
    assert_eq!((cpu.nominal, cpu.reserved, cpu.borrowing_limit), (8.0, 2.0, f64::INFINITY));
    assert_eq!(queue.requested, [("cpu".to_owned(), 7.0)]);
}

/// So many Workloads that are not admitted, for this reason and cause.
pub(super) fn unadmitted(reason: &str, cause: &str, count: usize) -> Measurement {
    let labels = UnadmittedLabels {
        cluster_queue: "cq".to_owned(),
        local_queue: labels().local_queue,
        reason: reason.to_owned(),
        underlying_cause: cause.to_owned(),
    };
    Measurement::UnadmittedWorkloads(labels, count)
}

#[test]
fn a_workload_that_no_cycle_has_evaluated_is_counted_until_it_is_deleted() {
    let mut cluster = Cluster::new();
    let strict = json!({"queueingStrategy": "StrictFIFO"});
    let running = json!({"status": workload()["status"]});
    cluster.queue(&strict).workload("running", 2, &running);
    cluster.workload("head", 7, &json!({})).settle().wait(60).settle();
    cluster.measurements.clear();
    let behind = unadmitted("NoReservation", "PendingEvaluation", 1);
    cluster.wait(1).workload("behind", 1, &json!({}));
    assert_eq!(settled(&mut cluster), [behind]);
    assert_eq!(cluster.condition("behind", "Admitted"), "none");
    let deleted = json!({"metadata": {
        "deletionTimestamp": cluster.now.to_string(), "finalizers": ["kueue.x-k8s.io/resource-in-use"],
    }});
    cluster.workload("behind", 1, &deleted);
    let measured = settled(&mut cluster);
    let gone = unadmitted("NoReservation", "PendingEvaluation", 0);
    assert_eq!(measured.first(), Some(&gone), "before its end: {measured:?}");
}

/// Labels of metrics from a label and from an annotation of Workloads.
const WORKLOAD_LABELS: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
metrics:
  customLabels:
  - {name: type, sourceKind: Workload, trackedValues: [train, serve]}
  - {name: cost, sourceKind: Workload, sourceAnnotationKey: budget, trackedValues: ['7']}
integrations: {labelKeysToCopy: [type, team]}
";

fn with_workload_labels() -> ManagerSettings {
    let file = Configuration::load(WORKLOAD_LABELS, None).expect("a configuration");
    let gates = Gates::parse("CustomMetricLabels=true").expect("a gate");
    ManagerSettings::new(&file, &gates, &kinds(), false)
}

#[test]
fn admissions_and_numbers_have_the_labels_of_their_workloads() {
    let mut cluster = Cluster::with(with_workload_labels());
    let labelled =
        json!({"metadata": {"labels": {"type": "train"}, "annotations": {"budget": "9"}}});
    cluster.workload("train", 2, &labelled).settle();
    let custom = vec!["train".to_owned(), UNTRACKED_METRIC_VALUE.to_owned()];
    let admitted = cluster.measurements.iter().find_map(|one| match one {
        Measurement::Admitted { labels, .. } => Some(&labels.custom),
        _ => None,
    });
    assert_eq!(admitted, Some(&custom));
    let mut cluster = Cluster::with(with_workload_labels());
    let running = json!({"metadata": labelled["metadata"], "status": workload()["status"]});
    cluster.workload("train", 2, &running).workload("other", 7, &json!({})).settle();
    let numbers = cluster.measurements.iter().rev().find_map(|one| match one {
        Measurement::ClusterQueue(queue, local) => Some((queue, local)),
        _ => None,
    });
    let (queue, local) = numbers.expect("numbers of the queue");
    let other = vec![UNTRACKED_METRIC_VALUE.to_owned(); 2];
    let by_labels = [
        LabelledNumbers { labels: custom, admitted: 1, ..LabelledNumbers::default() },
        LabelledNumbers { labels: other, inadmissible: 1, ..LabelledNumbers::default() },
    ];
    assert_eq!(queue.workloads.by_labels, by_labels);
    assert_eq!(local[0].workloads.by_labels, by_labels);
}

#[test]
fn jobs_give_their_workloads_what_labels_of_metrics_come_from() {
    let keys = &with_workload_labels().core.jobs.keys_to_copy;
    assert_eq!(keys.labels, ["type", "team"]);
    assert_eq!(keys.annotations, ["budget"]);
}

#[test]
fn a_deleted_queue_is_gone() {
    let mut cluster = Cluster::new();
    cluster.settle();
    let key = Key { namespace: None, name: "cq".into() };
    cluster.observe(ManagerInput::ClusterQueue(Change::Delete(key))).settle();
    let gone = cluster.measurements.iter().rev().find_map(|one| match one {
        Measurement::ClusterQueueGone(name, local) => Some((name.as_str(), local.as_slice())),
        _ => None,
    });
    let Some(("cq", [local])) = gone else { panic!("{gone:?}") };
    assert!(!local.active && local.resources.is_empty(), "its LocalQueue is measured: {local:?}");
    assert_eq!((&*local.name, &local.workloads), ("lq", &QueueNumbers::default()));
}

#[test]
fn no_workload_of_a_stopped_queue_is_active() {
    let mut cluster = Cluster::new();
    let running = json!({"status": workload()["status"]});
    cluster.queue(&json!({"stopPolicy": "Hold"})).workload("small", 2, &json!({}));
    cluster.workload("running", 2, &running).settle();
    let numbers = |cluster: &Cluster| {
        let mut measured = cluster.measurements.iter().rev();
        let last = measured.find_map(|one| match one {
            Measurement::ClusterQueue(queue, local) => Some((queue, local[0].workloads.clone())),
            _ => None,
        });
        let (queue, local) = last.expect("numbers of the queue");
        assert_eq!(queue.workloads, local);
        (queue.status, local.active, local.inadmissible, local.admitted, queue.classes)
    };
    assert_eq!(numbers(&cluster), ("pending", 0, 1, 1, (0, 1)));
}

#[test]
fn a_worker_is_measured_by_its_condition_and_the_heartbeats_of_its_report() {
    let (job, mut active) = (hub_job("20", true, &json!({})), east_cluster());
    let mut control = dispatching(&job, &[]);
    let conditions =
        json!([{"type": "Active", "status": "True", "reason": "Active", "message": ""}]);
    active["status"] = json!({ "conditions": conditions });
    let shown = ManagerInput::MultiKueueCluster(Change::Apply(shared(active)));
    control.observe(shown, NOW);
    connect(&mut control, vec![], vec![]);
    let report = json!({
        "metadata": {"name": "local", "resourceVersion": "5"}, "spec": {},
        "status": {"protocol": 1, "mode": "Thin", "asOf": "4", "reportedAt": "2020-01-01T00:00:00Z"},
    });
    let later = NOW + SignedDuration::from_secs(9);
    control.observe(east(WorkerInput::Capacity(list(vec![report]))), later);
    let cluster = || "east".to_owned();
    let measured = control.decide(later).measurements;
    for expected in [
        Measurement::Worker(WorkerMeasurement::Active { cluster: cluster(), active: true }),
        // The manager's own clock counts.
        Measurement::Worker(WorkerMeasurement::Reported { cluster: cluster(), at: later }),
    ] {
        assert!(measured.contains(&expected), "{expected:?} in {measured:?}");
    }
    let key = Key { namespace: None, name: "east".into() };
    control.observe(ManagerInput::MultiKueueCluster(Change::Delete(key)), later);
    assert!(
        control
            .decide(later)
            .measurements
            .contains(&Measurement::Worker(WorkerMeasurement::Gone(cluster())))
    );
}

fn east_cluster() -> Value {
    json!({"metadata": {"name": "east", "resourceVersion": "8"}, "spec": {}})
}

/// The statuses of workers that a decision measures, as `queue cluster status`.
fn statuses(control: &mut ManagerControl) -> Vec<String> {
    let word = |one: Measurement| match one {
        Measurement::Worker(WorkerMeasurement::Status { labels, active }) => {
            let active = active.unwrap_or("gone");
            Some(format!("{} {} {active}", labels.cluster_queue, labels.cluster))
        }
        _ => None,
    };
    control.decide(NOW).measurements.into_iter().filter_map(word).collect()
}

/// The MultiKueueCluster `east` with this status of its condition.
fn cluster(version: &str, status: &str) -> ManagerInput {
    let conditions = json!([{"type": "Active", "status": status, "reason": "Any", "message": ""}]);
    let mut cluster = east_cluster();
    cluster["metadata"]["resourceVersion"] = json!(version);
    cluster["status"] = json!({ "conditions": conditions });
    ManagerInput::MultiKueueCluster(Change::Apply(shared(cluster)))
}

fn config(clusters: &Value) -> ManagerInput {
    let config = json!({
        "metadata": {"name": "all", "resourceVersion": "10"}, "spec": {"clusters": clusters},
    });
    ManagerInput::MultiKueueConfig(Change::Apply(shared(config)))
}

fn queue(name: &str, generation: i64, checks: &Value) -> ManagerInput {
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {
            "name": name, "generation": generation, "resourceVersion": generation.to_string(),
        },
        "spec": {"namespaceSelector": {}, "admissionChecksStrategy": {"admissionChecks": checks}},
    });
    ManagerInput::ClusterQueue(Change::Apply(shared(queue)))
}

#[test]
fn the_condition_of_a_worker_is_measured_for_each_queue_that_leads_to_it() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    assert_eq!(statuses(&mut control), ["cq east Unknown"]);
    control.observe(cluster("8", "True"), NOW);
    assert_eq!(statuses(&mut control), ["cq east True"]);
    control.observe(cluster("9", "False"), NOW);
    assert_eq!(statuses(&mut control), ["cq east False"]);
    assert_eq!(statuses(&mut control), [""; 0]);

    control.observe(config(&json!(["east", "absent"])), NOW);
    assert_eq!(statuses(&mut control), [""; 0], "a cluster without an object has no series");
    control.observe(config(&json!(["absent"])), NOW);
    assert_eq!(statuses(&mut control), ["cq east gone"]);
    control.observe(config(&json!(["east"])), NOW);
    assert_eq!(statuses(&mut control), ["cq east False"]);

    control.observe(queue("other", 20, &json!([{"name": "workers"}])), NOW);
    assert_eq!(statuses(&mut control), ["other east False"]);
    control.observe(queue("cq", 21, &json!([])), NOW);
    assert_eq!(statuses(&mut control), ["cq east gone"]);
    let key = |name: &str| Key { namespace: None, name: name.into() };
    control.observe(ManagerInput::MultiKueueCluster(Change::Delete(key("east"))), NOW);
    assert_eq!(statuses(&mut control), ["other east gone"]);
    control.observe(cluster("30", "True"), NOW);
    assert_eq!(statuses(&mut control), ["other east True"]);
    control.observe(ManagerInput::AdmissionCheck(Change::Delete(key("workers"))), NOW);
    assert_eq!(statuses(&mut control), ["other east gone"]);
}

/// What is measured again after an input, as `queue` or `queue cluster`.
fn due(control: &mut ManagerControl, input: ManagerInput) -> Vec<String> {
    control.observe(input, NOW);
    let due = control.dispatching.registry.due_statuses(&control.dispatching.fleet);
    control.decide(NOW);
    let words = |(queue, scope): (Box<str>, StatusScope)| match scope {
        StatusScope::All => vec![queue.to_string()],
        StatusScope::Of(clusters) => {
            clusters.iter().map(|cluster| format!("{queue} {cluster}")).collect()
        }
    };
    due.into_iter().flat_map(words).collect()
}

#[test]
fn only_the_queues_and_workers_that_a_change_concerns_are_measured_again() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    statuses(&mut control);
    let (ours, none) = (json!([{"name": "workers"}]), json!([]));
    let mut due = |input| due(&mut control, input);
    assert_eq!(due(queue("other", 20, &ours)), ["other"]);
    assert_eq!(due(queue("other", 21, &ours)), [""; 0], "its checks are the same");
    assert_eq!(due(queue("local", 22, &none)), [""; 0]);
    assert_eq!(due(queue("local", 23, &json!([{"name": "nodes"}]))), ["local"]);
    assert_eq!(due(cluster("30", "True")), ["cq east", "other east"]);
    assert_eq!(due(cluster("31", "True")), [""; 0], "its condition is the same");
    assert_eq!(due(config(&json!(["east"]))), [""; 0]);
    assert_eq!(due(config(&json!(["east", "west"]))), ["cq", "other"]);
    assert_eq!(due(queue("other", 32, &none)), ["other"]);
    assert_eq!(due(cluster("33", "False")), ["cq east"]);
}
