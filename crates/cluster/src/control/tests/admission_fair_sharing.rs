//! Admission fair sharing: the LocalQueue that used less comes first, also after a restart.

use config::{AdmissionFairSharing, GoDuration};

use super::cluster::Cluster;
use super::*;

fn with_sharing(half_life: u32, gates: &str) -> Cluster {
    let mut file = Configuration::default();
    file.admission_fair_sharing = Some(AdmissionFairSharing {
        usage_half_life_time: GoDuration::from_secs(half_life),
        usage_sampling_interval: GoDuration::from_secs(10),
        resource_weights: BTreeMap::new(),
    });
    let gates = Gates::parse(gates).expect("gates");
    let mut cluster = Cluster::with(ManagerSettings::new(&file, &gates, &kinds(), false));
    let scope = json!({"admissionMode": "UsageBasedAdmissionFairSharing"});
    cluster.queue(&json!({"admissionScope": scope}));
    cluster
}

fn local_queue(name: &str, version: &str, status: &Value) -> ManagerInput {
    let queue = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version},
        "spec": {"clusterQueue": "cq"}, "status": status,
    });
    ManagerInput::LocalQueue(Change::Apply(shared(queue)))
}

/// Accepts writes of Workloads until there are none, and lets those of queues fail.
fn settle(cluster: &mut Cluster) {
    for _ in 0..5 {
        let step = cluster.control.decide(cluster.now);
        let tickets = step.orders.iter().map(|order| order.ticket.clone());
        let queues: Vec<Ticket> =
            tickets.filter(|one| one.target.subject != Subject::Workload).collect();
        cluster.take(step);
        for ticket in queues {
            cluster.control.answered(&ticket, WriteOutcome::Stale, cluster.now);
        }
    }
}

/// What is written about the usage of a LocalQueue at this time.
fn usage(cluster: &mut Cluster, name: &str) -> Option<Value> {
    let step = cluster.control.decide(cluster.now);
    let of_queue = |order: &&Order| {
        let target = &order.ticket.target;
        target.subject == Subject::LocalQueue && &*target.key.name == name
    };
    let order = step.orders.iter().find(of_queue);
    let body: Option<Value> =
        order.map(|order| serde_json::from_slice(order.write.request().body()).expect("JSON"));
    for order in &step.orders {
        cluster.control.answered(&order.ticket, WriteOutcome::Stale, cluster.now);
    }
    let status = body?["status"]["fairSharing"]["admissionFairSharingStatus"].clone();
    (!status.is_null()).then_some(status)
}

fn recorded(cpus: &str) -> Value {
    record_of(&json!({"cpu": cpus}))
}

fn record_of(consumed: &Value) -> Value {
    json!({"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": {
        "consumedResources": consumed, "lastUpdate": "1970-01-01T00:00:00Z",
    }}})
}

/// The one of two Workloads that is admitted first, of LocalQueues with these records.
fn first_admitted(mut cluster: Cluster, greedy: &Value, modest: &Value) -> String {
    cluster.observe(local_queue("greedy", "5", &record_of(greedy)));
    cluster.observe(local_queue("modest", "6", &record_of(modest)));
    let of = |queue: &str| json!({"spec": {"queueName": queue}});
    cluster.workload("older", 8, &of("greedy")).wait(1).workload("newer", 8, &of("modest"));
    cluster.settle();
    let reserved = cluster.take_writes().into_iter().find(|write| write.starts_with("reserve"));
    reserved.expect("there is room for one")
}

#[test]
fn the_local_queue_that_used_less_comes_first_also_after_a_restart() {
    let (greedy, modest) = (json!({"cpu": "100"}), json!({"cpu": "1"}));
    let first = |gates: &str| first_admitted(with_sharing(60, gates), &greedy, &modest);
    assert_eq!(first(""), "reserve newer");
    assert_eq!(first("AdmissionFairSharing=false"), "reserve older");
}

#[test]
fn a_core_counts_like_one_of_another_resource() {
    let (greedy, modest) = (json!({"cpu": "2", "example.com/gpu": "2"}), json!({"cpu": "3"}));
    assert_eq!(first_admitted(with_sharing(60, ""), &greedy, &modest), "reserve newer");
}

#[test]
fn parts_of_a_unit_are_recorded() {
    let mut cluster = with_sharing(10, "");
    let consumed = json!({"cpu": "11m", "example.com/gpu": "500m", "memory": "1Gi"});
    cluster.observe(local_queue("used", "5", &record_of(&consumed))).wait(50);
    let later = usage(&mut cluster, "used").expect("a record");
    let left = json!({"cpu": "343750n", "example.com/gpu": "15625u", "memory": "33554432"});
    assert_eq!(later["consumedResources"], left);
}

#[test]
fn usage_is_sampled_and_recorded_after_each_interval() {
    let mut cluster = with_sharing(10, "");
    cluster.observe(local_queue("used", "5", &json!({})));
    let first = usage(&mut cluster, "used").expect("a record");
    assert_eq!(first, json!({"consumedResources": {}, "lastUpdate": "1970-01-01T00:00:00Z"}));
    let wake = cluster.control.decide(cluster.now).wake.expect("a time");
    assert!(wake <= NOW + std::time::Duration::from_secs(10), "no input is needed: {wake}");

    settle(cluster.workload("a", 4, &json!({"spec": {"queueName": "used"}})));
    assert!(cluster.condition("a", "Admitted").starts_with("True"));
    cluster.observe(local_queue("used", "7", &json!({}))).wait(10);
    // Half of the usage of one half-life, and the penalty of the admission, of which half is left.
    let later = usage(&mut cluster, "used").expect("a record");
    assert_eq!(
        later,
        json!({"consumedResources": {"cpu": "3"}, "lastUpdate": "1970-01-01T00:00:10Z"})
    );
}

#[test]
fn a_record_that_this_process_has_written_is_not_taken_over_again() {
    let mut cluster = with_sharing(10, "");
    cluster.observe(local_queue("used", "5", &recorded("8"))).wait(10);
    let half = usage(&mut cluster, "used").expect("a record");
    assert_eq!(half["consumedResources"], json!({"cpu": "4"}));
    // The watch shows an older state late.
    cluster.observe(local_queue("used", "6", &recorded("8"))).wait(10);
    let quarter = usage(&mut cluster, "used").expect("a record");
    assert_eq!(quarter["consumedResources"], json!({"cpu": "2"}));
}

#[test]
fn a_queue_that_was_made_again_has_no_part_in_the_usage_of_the_first() {
    let mut cluster = with_sharing(10, "");
    cluster.observe(local_queue("used", "5", &recorded("8"))).wait(10);
    let half = usage(&mut cluster, "used").expect("a record");
    assert_eq!(half["consumedResources"], json!({"cpu": "4"}));
    // The deletion and the creation came between two lists, which show one object that changed.
    let queue = json!({
        "metadata": {"name": "used", "namespace": "ns", "uid": "second", "resourceVersion": "9"},
        "spec": {"clusterQueue": "cq"}, "status": {},
    });
    settle(cluster.observe(ManagerInput::LocalQueue(Change::Apply(shared(queue)))));
    let new = usage(cluster.wait(5), "used").expect("a record");
    assert_eq!(new, json!({"consumedResources": {}, "lastUpdate": "1970-01-01T00:00:10Z"}));
}
