//! A manager without scheduler: another client writes reservations, and everything that follows from them works.

use crds::names::dispatchers::ALL_AT_ONCE;

use super::{
    cluster::Cluster,
    dispatched::{connect, dispatching_lists, name, orders},
    measurement::{Measurement, QueueNumbers},
    *,
};

/// What another scheduler writes.
pub(super) fn reservation() -> Value {
    let condition = json!({
        "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    });
    json!({"admission": workload()["status"]["admission"], "conditions": [condition]})
}

fn paused() -> Cluster {
    Cluster::with(settings().without_scheduler())
}

/// The last numbers of the ClusterQueue.
fn numbers(cluster: &Cluster) -> QueueNumbers {
    let of_queue = |one: &Measurement| match one {
        Measurement::ClusterQueue(queue, _) => Some(queue.workloads.clone()),
        _ => None,
    };
    cluster.measurements.iter().rev().find_map(of_queue).expect("numbers of the queue")
}

#[test]
fn a_workload_stays_pending_and_is_counted() {
    let mut cluster = paused();
    let admitted = json!({"status": workload()["status"]});
    cluster.workload("admitted", 2, &admitted).workload("a", 2, &json!({})).settle();
    cluster.wait(120).settle();
    assert_eq!(cluster.workloads["a"]["status"].get("admission"), None);
    let expected = QueueNumbers { active: 1, reserving: 1, admitted: 1, ..QueueNumbers::default() };
    assert_eq!(numbers(&cluster), expected);
    let attempt = |one: &Measurement| matches!(one, Measurement::Attempt { .. });
    assert!(cluster.explained.is_empty() && !cluster.measurements.iter().any(attempt));
}

#[test]
fn a_reservation_of_another_client_is_admitted() {
    let mut cluster = paused();
    cluster.workload("a", 2, &json!({"status": reservation()})).settle();
    assert!(cluster.condition("a", "Admitted").starts_with("True Admitted"));
}

#[test]
fn the_job_of_an_admitted_workload_starts() {
    let mut cluster = paused();
    cluster.observe(ManagerInput::Job(batch_job(), jobs(vec![json!(job())]))).settle();
    let name = cluster.workloads.keys().next().expect("a Workload of the Job").clone();
    cluster.workload(&name, 2, &json!({"status": reservation()}));
    let step = cluster.control.decide(cluster.now);
    cluster.take(step);
    let started = orders(&cluster.control.decide(cluster.now));
    assert!(started.contains(&"hub start".to_owned()), "{started:?}");
}

#[test]
fn checks_evict_and_a_backoff_ends() {
    let mut cluster = paused();
    let strategy = json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "one"}]}});
    cluster.check("one").queue(&strategy).workload("a", 2, &json!({"status": reservation()}));
    cluster.settle();
    assert!(cluster.condition("a", "Admitted").starts_with("False UnsatisfiedAdmissionChecks"));
    let retry = json!([{
        "name": "one", "state": "Retry", "message": "busy", "requeueAfterSeconds": 5,
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]);
    cluster.workload("a", 2, &json!({"status": {"admissionChecks": retry}})).settle();
    assert!(cluster.condition("a", "Evicted").starts_with("True AdmissionCheck"));

    let backoff = json!({
        "requeueState": {"count": 1, "requeueAt": "1970-01-01T00:00:09Z"},
        "conditions": [{
            "type": "Requeued", "status": "False", "reason": "AdmissionCheck", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }],
    });
    cluster.workload("b", 2, &json!({"status": backoff})).settle().wait(10).settle();
    assert!(cluster.condition("b", "Requeued").starts_with("True BackoffFinished"));
}

#[test]
fn no_victim_makes_room() {
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    for (mut cluster, evicts) in [(Cluster::new(), true), (paused(), false)] {
        cluster.queue(&preemption).workload("low", 8, &json!({"status": reservation()})).settle();
        cluster.workload("high", 8, &json!({"spec": {"priority": 9}})).settle();
        let evicted = cluster.condition("low", "Evicted").starts_with("True Preempted");
        assert_eq!(evicted, evicts, "{:?}", cluster.workloads["low"]);
    }
}

#[test]
fn what_holds_a_reservation_is_nominated() {
    let mut hub = workload();
    hub["metadata"]["name"] = json!(name());
    hub["status"] = reservation();
    hub["status"]["admissionChecks"] =
        json!([{"name": "workers", "state": "Pending", "message": ""}]);
    let mut control = leading(dispatching_settings(ALL_AT_ONCE).without_scheduler());
    let mut dispatched = json!(job());
    dispatched["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
    let lists = dispatching_lists(&dispatched, &[hub]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    connect(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    let of_workload =
        step.orders.iter().find(|order| order.ticket.target.subject == Subject::Workload);
    let order = of_workload.expect("a write of the Workload");
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    assert_eq!(body["status"]["nominatedClusterNames"], json!(["east"]), "{body}");
}

/// A Cohort with this parent.
fn cohort(name: &str, parent: &str) -> ManagerInput {
    let cohort = json!({
        "metadata": {"name": name, "resourceVersion": "9"}, "spec": {"parentName": parent},
    });
    ManagerInput::Cohort(Change::Apply(shared(cohort)))
}

/// Nothing marks the cycle before the configuration is applied, and a reservation may be observed earlier.
#[test]
fn a_cohort_cycle_stops_no_manager() {
    for settings in [settings(), settings().without_scheduler()] {
        let mut cluster = Cluster::with(settings);
        cluster.observe(cohort("a", "b")).observe(cohort("b", "a"));
        cluster.queue(&json!({"cohortName": "a"}));
        cluster.workload("a", 2, &json!({"status": reservation()})).settle();
        assert_eq!(numbers(&cluster).reserving, 1);
        // Its usage is released.
        cluster.delete("a").settle();
    }
}

#[test]
fn the_share_of_a_queue_counts_what_it_borrows() {
    let mut settings = settings().without_scheduler();
    settings.core.scheduler.engine.fair_sharing = Some(vec![]);
    let mut cluster = Cluster::with(settings);
    cluster.observe(queue_objects::cohort()).queue(&json!({"cohortName": "team"}));
    let mut status = reservation();
    status["admission"]["podSetAssignments"][0]["resourceUsage"]["cpu"] = json!("9");
    status["admission"]["podSetAssignments"][0]["count"] = json!(9);
    cluster.workload("a", 9, &json!({"status": status}));
    let decisions = cluster.control.decide(cluster.now);
    let bodies = queue_objects::bodies(&decisions, &Subject::ClusterQueue);
    let (_, body) = bodies.first().expect("a write of the queue");
    // One of ten cpus.
    assert_eq!(body["status"]["fairSharing"]["weightedShare"], json!(100));
}
