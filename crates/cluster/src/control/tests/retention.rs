//! `objectRetentionPolicies`.

use std::time::Duration;

use config::{GoDuration, ObjectRetentionPolicies, WorkloadRetention};

use super::cluster::Cluster;
use super::*;

fn with_retention(finished: Option<u32>, deactivated: Option<u32>) -> Cluster {
    let seconds = |one: Option<u32>| one.map(GoDuration::from_secs);
    let workloads = WorkloadRetention {
        after_finished: seconds(finished),
        after_deactivated_by_kueue: seconds(deactivated),
    };
    let mut file = Configuration::default();
    file.object_retention_policies = Some(ObjectRetentionPolicies { workloads: Some(workloads) });
    Cluster::with(ManagerSettings::new(&file, &Gates::default(), &kinds(), false))
}

fn finished() -> Value {
    json!({"status": {"conditions": [{
        "type": "Finished", "status": "True", "reason": "Succeeded", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]}})
}

#[test]
fn a_finished_workload_is_deleted_after_its_retention() {
    let deleted =
        "a kueue-workload-controller Deleted: Deleted finished workload due to elapsed retention";
    let mut cluster = with_retention(Some(60), None);
    cluster.workload("a", 2, &finished()).settle();
    assert_eq!(cluster.take_writes(), [""; 0]);
    let wake = cluster.control.decide(cluster.now).wake;
    assert_eq!(wake, Some(NOW + Duration::from_secs(60)), "no input is needed");
    cluster.wait(60);
    let step = cluster.control.decide(cluster.now);
    let purposes: Vec<_> = step.orders.iter().map(|order| order.ticket.purpose).collect();
    assert_eq!(purposes, [Purpose::WorkloadDelete]);
    cluster.control.answered(&step.orders[0].ticket, WriteOutcome::done(Value::Null), cluster.now);
    cluster.take(Decisions { events: step.events, ..Decisions::default() });
    let next = cluster.control.decide(cluster.now);
    cluster.take(Decisions { events: next.events, ..Decisions::default() });
    assert_eq!(cluster.take_events(), [deleted]);

    let mut forever = with_retention(None, None);
    forever.workload("a", 2, &finished()).settle();
    forever.wait(1_000_000);
    assert!(forever.control.decide(forever.now).orders.is_empty());
    let mut at_once = with_retention(Some(0), None);
    at_once.workload("a", 2, &finished());
    let step = at_once.control.decide(NOW);
    assert!(step.orders.iter().any(|order| order.ticket.purpose == Purpose::WorkloadDelete));
}

/// Orders about the job of a Workload that was deactivated at the beginning, after so many seconds.
fn orders_about_job(cluster: &mut Cluster, reason: &str, seconds: i64) -> Vec<String> {
    let job = jobs(vec![json!(job())]);
    cluster.observe(ManagerInput::Job(batch_job(), job));
    let owners = workload()["metadata"]["ownerReferences"].clone();
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        })
    };
    let deactivated = json!({
        "metadata": {"ownerReferences": owners}, "spec": {"active": false},
        "status": {"conditions": [
            condition("QuotaReserved", "False", "Deactivated"),
            condition("Admitted", "False", "NoReservation"),
            condition("Evicted", "True", reason),
            condition("Requeued", "False", reason),
        ]},
    });
    cluster.workload("job-train", 2, &deactivated).settle();
    let mut writes = Vec::new();
    cluster.wait(seconds);
    let step = cluster.control.decide(cluster.now);
    for order in step.orders.iter().filter(|order| order.ticket.target.subject != Subject::Workload)
    {
        let method = order.write.request().method().as_str();
        writes.push(format!("{method} {}", order.ticket.target.key));
    }
    let events = step.events.into_iter().map(|event| format!("{}: {}", event.reason, event.note));
    writes.into_iter().chain(events).collect()
}

#[test]
fn the_job_of_a_workload_that_was_deactivated_for_a_reason_is_deleted_after_the_retention() {
    let limit = "DeactivatedDueToRequeuingLimitExceeded";
    let deleted =
        ["DELETE ns/train", "Deleted: Deleted job: deactivation retention period expired"];
    assert_eq!(orders_about_job(&mut with_retention(None, Some(60)), limit, 60), deleted);
    assert_eq!(orders_about_job(&mut with_retention(None, Some(60)), limit, 59), [""; 0]);
    assert_eq!(orders_about_job(&mut with_retention(Some(60), None), limit, 60), [""; 0]);
    let by_user = orders_about_job(&mut with_retention(None, Some(60)), "Deactivated", 60);
    assert_eq!(by_user, [""; 0], "a user may activate it again");
}
