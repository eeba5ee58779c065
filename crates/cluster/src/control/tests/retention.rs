//! `objectRetentionPolicies`.

use std::time::Duration;

use config::{GoDuration, ObjectRetentionPolicies, WorkloadRetention};

use super::cluster::{Cluster, json_merge};
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

/// A Workload with these owners that was deactivated at the beginning.
fn deactivated(owners: &Value, reason: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        })
    };
    json!({
        "metadata": {"ownerReferences": owners}, "spec": {"active": false},
        "status": {"conditions": [
            condition("QuotaReserved", "False", "Deactivated"),
            condition("Admitted", "False", "NoReservation"),
            condition("Evicted", "True", reason),
            condition("Requeued", "False", reason),
        ]},
    })
}

/// Orders about jobs, and Events, after so many seconds.
fn orders_after(cluster: &mut Cluster, seconds: i64) -> Vec<String> {
    cluster.wait(seconds);
    let step = cluster.control.decide(cluster.now);
    let is_of_job = |order: &&Order| order.ticket.target.subject != Subject::Workload;
    let write =
        |order: &Order| format!("{} {}", order.write.request().method(), order.ticket.target.key);
    let writes: Vec<String> = step.orders.iter().filter(is_of_job).map(write).collect();
    let events = step.events.into_iter().map(|event| format!("{}: {}", event.reason, event.note));
    writes.into_iter().chain(events).collect()
}

/// Orders about the job of a Workload that was deactivated at the beginning, after so many seconds.
fn orders_about_job(cluster: &mut Cluster, reason: &str, seconds: i64) -> Vec<String> {
    let job = jobs(vec![json!(job())]);
    cluster.observe(ManagerInput::Job(batch_job(), job));
    let owners = &workload()["metadata"]["ownerReferences"];
    cluster.workload("job-train", 2, &deactivated(owners, reason)).settle();
    orders_after(cluster, seconds)
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

/// The eviction has the cause from then on.
#[test]
fn the_job_of_a_workload_that_was_rejected_during_its_eviction_is_deleted_after_the_retention() {
    let mut cluster = with_retention(None, Some(3600));
    cluster.observe(ManagerInput::Job(batch_job(), jobs(vec![json!(job())]))).check("one");
    cluster.queue(&json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "one"}]}}));
    let mut evicted = json!({"metadata": workload()["metadata"], "status": workload()["status"]});
    evicted["status"]["conditions"].as_array_mut().expect("conditions").push(json!({
        "type": "Evicted", "status": "True", "reason": "Preempted", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }));
    evicted["status"]["admissionChecks"] = json!([{
        "name": "one", "state": "Rejected", "message": "no", "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]);
    cluster.workload("job-train", 2, &evicted).settle();
    assert!(cluster.condition("job-train", "QuotaReserved").starts_with("False"));
    let (deleted, writes) = ("DELETE ns/train", orders_after(&mut cluster, 3600));
    assert!(writes.iter().any(|one| one == deleted), "{writes:?}");
}

/// The same about a group of two pods, with these annotations and one member that is being deleted.
fn orders_about_group(annotations: &Value, reason: &str, seconds: i64) -> Vec<String> {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks = vec!["pod".to_owned()];
    let workloads = WorkloadRetention {
        after_finished: None,
        after_deactivated_by_kueue: Some(GoDuration::from_secs(60)),
    };
    file.object_retention_policies = Some(ObjectRetentionPolicies { workloads: Some(workloads) });
    let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
    let mut cluster = Cluster::with(ManagerSettings::new(&file, &Gates::default(), &kinds, false));
    let kind = || ::jobs::pods::kind().clone();
    let members = [("a", None), ("b", Some("1970-01-01T00:00:00Z"))].map(|(name, deleted)| {
        let mut pod = json!({
            "metadata": {
                "name": name, "namespace": "ns", "uid": name, "resourceVersion": "1",
                "finalizers": ["kueue.x-k8s.io/managed"], "deletionTimestamp": deleted,
                "labels": {
                    "kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/managed": "true",
                    "kueue.x-k8s.io/pod-group-name": "team",
                },
                "annotations": {
                    "kueue.x-k8s.io/pod-group-total-count": "2",
                    "kueue.x-k8s.io/role-hash": "main",
                },
            },
            "spec": {
                "containers": [{"name": "main"}],
                "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
            },
            "status": {"phase": "Pending"},
        });
        json_merge(&mut pod["metadata"]["annotations"], annotations);
        Arc::new(kind().decode(pod).expect("a pod decodes"))
    });
    let all = Change::Reset { objects: members.to_vec(), removed: vec![] };
    cluster.observe(ManagerInput::Job(kind(), all));
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name});
    let mut workload = deactivated(&json!([owner("a"), owner("b")]), reason);
    workload["metadata"]["annotations"] = json!({"kueue.x-k8s.io/is-group-workload": "true"});
    cluster.workload("team", 2, &workload).settle();
    orders_after(&mut cluster, seconds)
}

#[test]
fn the_members_of_a_deactivated_group_are_deleted_after_the_retention() {
    let (limit, plain) = ("DeactivatedDueToRequeuingLimitExceeded", json!({}));
    let deleted = [
        "DELETE ns/a",
        "PATCH ns/b",
        "Deleted: Deleted job: deactivation retention period expired",
    ];
    assert_eq!(orders_about_group(&plain, limit, 60), deleted);
    assert_eq!(orders_about_group(&plain, limit, 59), [""; 0]);
    assert_eq!(orders_about_group(&plain, "Deactivated", 60), [""; 0]);
    let serving = json!({"kueue.x-k8s.io/pod-group-serving": "true"});
    assert_eq!(orders_about_group(&serving, limit, 60), [""; 0], "its owner makes pods again");
}
