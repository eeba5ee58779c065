//! What becomes of the Workloads of an earlier job of the name.

use super::{
    cluster::{Cluster, json_merge},
    workloads_of_jobs::{labels, observe_job},
    *,
};

/// The names of the Workloads that are deleted beside a job, which is made at this second and suspended or not, when an earlier job
/// of its name has one that was made at second 30; and the Events.
fn deleted_beside(made: u8, suspend: bool, former: &Value) -> (Vec<String>, Vec<String>) {
    let mut cluster = Cluster::new();
    let at = |second: u8| format!("2026-01-01T00:00:{second:02}Z");
    let mut owners = workload()["metadata"]["ownerReferences"].clone();
    owners[0]["uid"] = json!("former");
    let mut other = json!({"metadata": {"creationTimestamp": at(30), "ownerReferences": owners}});
    json_merge(&mut other, former);
    cluster.workload("other", 5, &other);
    let job = json!({
        "metadata": {"creationTimestamp": at(made)}, "spec": {"parallelism": 9, "suspend": suspend},
    });
    observe_job(&mut cluster, "20", &job);
    let step = cluster.control.decide(cluster.now);
    let deletes = |order: &&Order| order.write.request().method() == "DELETE";
    let name = |order: &Order| order.ticket.target.key.name.to_string();
    let names = step.orders.iter().filter(deletes).map(name).collect();
    for order in &step.orders {
        let answer = WriteOutcome::done(json!({"kind": "Status", "status": "Success"}));
        cluster.control.answered(&order.ticket, answer, cluster.now);
    }
    let events = cluster.control.decide(cluster.now).events.into_iter();
    (names, events.map(|one| format!("{}: {}", one.reason, one.note)).collect())
}

#[test]
fn a_workload_of_an_earlier_job_of_the_name_is_deleted_and_announced() {
    let (deleted, events) = deleted_beside(31, true, &json!({}));
    let announced = "DeletedWorkload: Deleted not matching Workload: ns/other".to_owned();
    assert_eq!((deleted, events.contains(&announced)), (vec!["other".to_owned()], true));
    let (deleted, events) = deleted_beside(31, false, &json!({}));
    assert_eq!((deleted, events.contains(&announced)), (vec!["other".to_owned()], true));
    let stopped =
        "Stopped: No matching Workload; restoring pod templates according to existent Workload";
    assert!(events.iter().any(|one| one == stopped), "{events:?}");
    // It may be that of a later job, which the watch does not show yet.
    assert_eq!(deleted_beside(30, true, &json!({})).0, [""; 0]);
    let copy = labels("kueue.x-k8s.io/multikueue-origin", "multikueue");
    assert_eq!(deleted_beside(31, true, &copy).0, [""; 0], "its manager decides");
    let of_another = json!({"metadata": {"ownerReferences": controlled_by_another("former")}});
    assert_eq!(deleted_beside(31, true, &of_another).0, [""; 0], "the job is an owner alone");
}

/// Owner references of a Workload with a controller that is no job, and with a job of this uid as a plain owner.
fn controlled_by_another(uid: &str) -> Value {
    let mut owners = workload()["metadata"]["ownerReferences"].clone();
    owners[0]["uid"] = json!(uid);
    owners[0].as_object_mut().expect("a reference").remove("controller");
    let controller = json!({
        "apiVersion": "example.com/v1", "kind": "Trainer", "name": "trainer", "uid": "trainer-1",
        "controller": true,
    });
    owners.as_array_mut().expect("references").push(controller);
    owners
}

#[test]
fn the_deleted_workload_of_a_job_that_has_a_successor_is_let_go() {
    let mut cluster = Cluster::new();
    observe_job(&mut cluster, "20", &json!({}));
    cluster.settle();
    let name = cluster.workloads.keys().next().expect("a Workload").clone();
    // The write that followed the end of the job was refused, because the garbage collector had deleted the Workload; the next job of the
    // name is there when that shows.
    observe_job(&mut cluster, "30", &json!({"metadata": {"uid": "job-2"}}));
    let mut deleted = cluster.workloads[&name].clone();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    cluster.store(&name, deleted);
    let deleted = cluster.workloads[&name].clone();
    cluster.observe(ManagerInput::Workload(Change::Apply(shared(deleted)))).settle();
    assert_eq!(cluster.workloads[&name]["metadata"]["finalizers"], json!([]));
}

#[test]
fn the_deleted_workload_of_another_controller_keeps_its_finalizer() {
    let mut cluster = Cluster::new();
    let deleted = json!({"metadata": {
        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        "ownerReferences": controlled_by_another("job-1"),
    }});
    cluster.workload("other", 5, &deleted);
    observe_job(&mut cluster, "30", &json!({"metadata": {"uid": "job-2"}}));
    cluster.settle();
    let finalizers = &cluster.workloads["other"]["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["kueue.x-k8s.io/resource-in-use"]));
}
