//! How often the reason of a pending Workload is written.

use super::{cluster::Cluster, outbox::MAX_REASONS_IN_FLIGHT, *};

const RESERVED: &str = "QuotaReserved";

/// So many Workloads that do not fit their queue.
fn too_large(count: usize) -> Cluster {
    let mut cluster = Cluster::new();
    for at in 0..count {
        cluster.workload(&format!("w{at}"), 9 + at, &json!({}));
    }
    cluster.settle().wait(1).settle();
    cluster.take_writes();
    cluster
}

/// Writes of one Workload's reason since the last call.
fn reasons_of(cluster: &mut Cluster, name: &str) -> usize {
    let write = format!("pending {name}");
    cluster.take_writes().iter().filter(|one| **one == write).count()
}

/// Rewrites the spec of a Workload with another number of pods.
fn resize(cluster: &mut Cluster, name: &str, cpus: usize, generation: usize) {
    let mut sets = cluster.workloads[name]["spec"]["podSets"].clone();
    sets[0]["count"] = json!(cpus);
    let fields = json!({"metadata": {"generation": generation}, "spec": {"podSets": sets}});
    cluster.workload(name, cpus, &fields).settle();
}

#[test]
fn a_queue_that_appears_right_after_the_first_reason_is_shown_at_once() {
    let mut cluster = Cluster::new();
    cluster.workload("w", 1, &json!({"spec": {"queueName": "later"}})).settle().wait(1).settle();
    let missing = |what: &str| format!("False Misconfigured: {what} doesn't exist");
    assert_eq!(cluster.condition("w", RESERVED), missing("LocalQueue later"));
    let local = shared(json!({
        "metadata": {"name": "later", "namespace": "ns", "resourceVersion": "31"},
        "spec": {"clusterQueue": "ns-cq"},
    }));
    cluster.wait(1).observe(ManagerInput::LocalQueue(Change::Apply(local))).settle();
    cluster.wait(1).settle();
    assert_eq!(cluster.condition("w", RESERVED), missing("ClusterQueue ns-cq"));
}

#[test]
fn a_changed_spec_shows_its_requests_at_once() {
    let mut cluster = too_large(1);
    let shown = |cluster: &Cluster| {
        cluster.workloads["w0"]["status"]["resourceRequests"][0]["resources"]["cpu"].clone()
    };
    assert_eq!(shown(&cluster), json!("9"));
    cluster.wait(1);
    resize(&mut cluster, "w0", 12, 2);
    cluster.wait(1).settle();
    assert_eq!(shown(&cluster), json!("12"));
}

#[test]
fn a_queue_that_stops_and_resumes_all_the_time_has_few_writes() {
    let mut cluster = too_large(3);
    for round in 0..30 {
        let policy = if round % 2 == 0 { "Hold" } else { "None" };
        cluster.queue(&json!({"stopPolicy": policy})).settle();
        cluster.wait(1).settle().wait(1).settle();
    }
    let writes = reasons_of(&mut cluster, "w1");
    assert!((8..=14).contains(&writes), "{writes}");
    cluster.queue(&json!({"stopPolicy": "Hold"})).settle().wait(5).settle();
    assert_eq!(
        cluster.condition("w1", RESERVED),
        "False Suspended: ClusterQueue cq is inactive",
        "the last reason is shown"
    );
}

#[test]
fn a_spec_that_is_rewritten_every_second_has_few_writes() {
    let mut cluster = too_large(1);
    for second in 0..60 {
        resize(&mut cluster, "w0", 10 + second, 2 + second);
        cluster.wait(1).settle();
    }
    let writes = reasons_of(&mut cluster, "w0");
    assert!((8..=14).contains(&writes), "{writes}");
}

#[test]
fn many_reasons_leave_room_for_a_reservation() {
    let mut cluster = Cluster::new();
    for at in 0..100 {
        cluster.workload(&format!("w{at:02}"), 9 + at, &json!({}));
    }
    let decided = |cluster: &mut Cluster| {
        let orders = cluster.control.decide(cluster.now).orders.into_iter();
        orders.filter(|order| order.ticket.target.subject == Subject::Workload).collect::<Vec<_>>()
    };
    assert!(
        decided(&mut cluster).is_empty(),
        "a reason that a cycle may soon change is not written"
    );
    let orders = decided(cluster.wait(1));
    assert!(orders.iter().all(|order| order.ticket.purpose == Purpose::Pending));
    assert_eq!(orders.len(), MAX_REASONS_IN_FLIGHT, "the others wait");
    cluster.workload("later", 1, &json!({}));
    let reserved = decided(&mut cluster);
    assert_eq!(reserved.len(), 1, "a reason frees no room for another one");
    assert_eq!(reserved[0].ticket.purpose, Purpose::Reserve);

    let mut in_flight = orders.into_iter();
    let mut answer = |cluster: &mut Cluster, count: usize| {
        for order in in_flight.by_ref().take(count) {
            cluster.control.answered(&order.ticket, WriteOutcome::Stale, cluster.now);
        }
    };
    answer(&mut cluster, 3);
    let next = decided(&mut cluster);
    let names = next.iter().map(|order| order.ticket.target.key.name.to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["w16", "w17", "w18"], "in their order");
    answer(&mut cluster, 100);
    for order in next.into_iter().chain(reserved) {
        cluster.control.answered(&order.ticket, WriteOutcome::Stale, cluster.now);
    }
    // Those that were answered as stale are decided again.
    cluster.settle().wait(30).settle();
    for at in 0..100 {
        let reason = cluster.condition(&format!("w{at:02}"), RESERVED);
        assert!(reason.starts_with("False "), "w{at:02}: {reason}");
    }
}

#[test]
fn a_resource_outside_all_groups_leaves_the_reason_pending() {
    for gates in ["", "UnadmittedWorkloadsObservability=false"] {
        let mut cluster = life_cycle::with_gates(gates);
        let quota = |name: &str| json!({"name": name, "nominalQuota": "8"});
        cluster.queue(&json!({"resourceGroups": [{
            "coveredResources": ["cpu", "memory"],
            "flavors": [{"name": "default", "resources": [quota("cpu"), quota("memory")]}],
        }]}));
        let requests = json!({"cpu": "1", "memory": "1", "nvidia.com/gpu": "1"});
        let container = json!({"name": "main", "resources": {"requests": requests}});
        cluster.workload(
            "w",
            1,
            &json!({"spec": {"podSets": [{
                "name": "main", "count": 1, "template": {"spec": {"containers": [container]}},
            }]}}),
        );
        cluster.settle().wait(1).settle();
        assert_eq!(
            cluster.condition("w", RESERVED),
            "False Pending: couldn't assign flavors to pod set main: resource nvidia.com/gpu unavailable in ClusterQueue",
            "{gates}"
        );
        let pending = "w kueue-admission Pending: couldn't assign flavors";
        let events = cluster.take_events();
        assert!(events.iter().any(|one| one.starts_with(pending)), "{gates}: {events:?}");
    }
}
