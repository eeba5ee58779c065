//! Bound pods of Workloads without a reservation take room of their nodes until they have ended.

use super::{
    cluster::{Cluster, json_merge},
    topologies::{assigned, on_node, pod, pods, required, topology, with_workload},
    *,
};

/// The four pods of `train`, which take all of rack `a`.
const PLACES: [(&str, &str); 4] = [("p0", "a1"), ("p1", "a1"), ("p2", "a2"), ("p3", "a2")];

/// A pod of `train` on a node, which takes 2 cpus there.
fn bound(name: &str, node: &str, version: u32) -> Value {
    let mut pod = on_node(name, 0, node, version);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    pod
}

fn deleting(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    pod
}

fn ended(mut pod: Value) -> Value {
    pod["status"]["phase"] = json!("Succeeded");
    pod
}

fn all_bound() -> Vec<Value> {
    PLACES.map(|(name, node)| bound(name, node, 80)).to_vec()
}

/// `train` runs on all of rack `a`.
fn running() -> Cluster {
    let mut cluster = with_workload(4);
    cluster.observe(pods(all_bound())).settle();
    cluster
}

/// A Workload has lost its reservation, and this condition is true.
fn released(name: &str) -> Value {
    let condition = |name: &str, status: &str| {
        json!({
            "type": name, "status": status, "reason": "Preempted", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        })
    };
    let conditions = [condition("QuotaReserved", "False"), condition(name, "True")];
    json!({"spec": {"active": false}, "status": {"admission": null, "conditions": conditions}})
}

/// The rack of a Workload of four pods; `None` if it waits.
fn rack(cluster: &Cluster, name: &str) -> Option<char> {
    let reserved = cluster.condition(name, "QuotaReserved").starts_with("True");
    reserved.then(|| assigned(cluster, name)[0].0.chars().next().expect("a name"))
}

/// The rack of rack `a` is free for no Workload until the pods there have ended.
fn is_taken_until_pods_end(cluster: &mut Cluster) {
    cluster.workload("next", 1, &required(4)).settle();
    assert_eq!(rack(cluster, "next"), Some('b'), "pods run in the other rack");
    cluster.workload("last", 1, &required(4)).settle();
    assert_eq!(rack(cluster, "last"), None);
    for (version, (name, node)) in (90..).zip(PLACES) {
        cluster.observe(pod(deleting(bound(name, node, version)))).settle();
    }
    assert_eq!(rack(cluster, "last"), None, "pods that are being deleted take room");
    for (version, (name, node)) in (95..).zip(PLACES) {
        cluster.observe(pod(ended(bound(name, node, version)))).settle();
    }
    assert_eq!(rack(cluster, "last"), Some('a'), "the end of the pods wakes it");
}

#[test]
fn pods_of_an_evicted_workload_take_room_until_they_end() {
    let mut cluster = running();
    cluster.workload("train", 1, &released("Evicted")).settle();
    is_taken_until_pods_end(&mut cluster);
}

#[test]
fn pods_of_a_finished_workload_take_room_until_they_end() {
    let mut cluster = running();
    cluster.workload("train", 1, &released("Finished")).settle();
    is_taken_until_pods_end(&mut cluster);
}

#[test]
fn pods_of_a_deleted_workload_take_room_until_they_end() {
    let mut cluster = running();
    cluster.delete("train");
    is_taken_until_pods_end(&mut cluster);
}

#[test]
fn pods_that_are_listed_before_workloads_take_room() {
    for exists in [true, false] {
        let before = with_workload(4);
        let mut cluster = Cluster::new();
        cluster.observe(pods(all_bound()));
        if exists {
            cluster.workload("train", 1, &before.workloads["train"]);
        }
        topology(&mut cluster);
        cluster.workload("next", 1, &required(4)).settle();
        assert_eq!(rack(&cluster, "next"), Some('b'), "the Workload exists: {exists}");
    }
}

#[test]
fn pods_of_a_reservation_are_counted_once() {
    let before = with_workload(1);
    let mut cluster = Cluster::new();
    // A reservation of one pod on the first node.
    cluster.observe(pods(vec![bound("p0", "a1", 80)]));
    cluster.workload("train", 1, &before.workloads["train"]);
    topology(&mut cluster);
    cluster.workload("next", 1, &required(3)).settle();
    let places = [("a1".to_owned(), 1), ("a2".to_owned(), 2)];
    assert_eq!(assigned(&cluster, "next"), places, "the rack has room for exactly three pods more");
}

#[test]
fn a_new_reservation_accounts_for_the_pods_in_the_same_decision() {
    let mut cluster = running();
    cluster.delete("train");
    // The new Workload of the name does not get the nodes of the old pods.
    let mut first = required(4);
    first["spec"]["priority"] = json!(1);
    cluster.workload("train", 1, &first);
    cluster.workload("next", 1, &required(4)).settle();
    assert_eq!(rack(&cluster, "train"), Some('b'));
    assert_eq!(rack(&cluster, "next"), Some('a'), "no pod is counted beside the reservation");
}

#[test]
fn pods_of_an_earlier_job_take_room_beside_the_reservation_of_a_later_one() {
    let owner = |uid: &str| json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": true}]);
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let mut all = all_bound();
    all.iter_mut().for_each(|pod| pod["metadata"]["ownerReferences"] = owner("old"));
    cluster.observe(pods(all));
    let mut later = required(4);
    later["metadata"] = json!({"ownerReferences": owner("new")});
    cluster.workload("train", 1, &later).settle();
    assert_eq!(rack(&cluster, "train"), Some('b'));
    cluster.workload("next", 1, &required(4)).settle();
    assert_eq!(rack(&cluster, "next"), None);
}

#[test]
fn a_pod_of_the_same_name_on_another_node_frees_the_first() {
    let mut cluster = running();
    cluster.delete("train");
    let moved = PLACES.iter().zip(["b1", "b1", "b2", "b2"]).map(|((name, _), node)| {
        let mut pod = bound(name, node, 90);
        pod["metadata"]["uid"] = json!(format!("{name}-again"));
        pod
    });
    cluster.observe(pods(moved.collect()));
    cluster.workload("next", 1, &required(4)).settle();
    assert_eq!(rack(&cluster, "next"), Some('a'));
    cluster.workload("last", 1, &required(4)).settle();
    assert_eq!(rack(&cluster, "last"), None);
}

#[test]
fn a_preemptor_waits_for_the_pods_of_its_target_and_preempts_nothing_else() {
    let mut cluster = running();
    cluster.queue(&json!({
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "40"}]}],
        }],
    }));
    cluster.workload("other", 1, &required(4)).settle();
    cluster.workload("train", 1, &released("Evicted")).settle();
    let mut high = required(4);
    high["spec"]["priority"] = json!(10);
    cluster.workload("high", 1, &high).settle();
    assert_eq!(cluster.condition("other", "Evicted"), "none", "its node is not needed");
    let pending = cluster.condition("high", "QuotaReserved");
    assert!(!pending.starts_with("True"), "{pending}");
    for (version, (name, node)) in (95..).zip(PLACES) {
        cluster.observe(pod(ended(bound(name, node, version)))).settle();
    }
    assert_eq!((rack(&cluster, "high"), rack(&cluster, "other")), (Some('a'), Some('b')));
}

#[test]
fn pods_of_an_evicted_workload_leave_after_its_deletion() {
    let mut cluster = running();
    with_preemption(&mut cluster);
    cluster.workload("other", 1, &required(4)).settle();
    cluster.workload("train", 1, &released("Evicted")).settle();
    cluster.delete("train");
    let mut high = required(4);
    high["spec"]["priority"] = json!(10);
    cluster.workload("high", 1, &high).settle();
    assert!(!is_preempted(&cluster, "other"), "the garbage collector is to delete the pods");
    cluster.wait(610).settle();
    assert!(is_preempted(&cluster, "other"), "the garbage collector may be stopped");
}

#[test]
fn an_eviction_counts_for_no_pods_of_the_name_that_come_later() {
    let mut cluster = running();
    with_preemption(&mut cluster);
    cluster.workload("other", 1, &required(4)).settle();
    cluster.workload("train", 1, &released("Evicted")).settle();
    cluster.delete("train");
    let removed = PLACES.map(|(name, _)| Key { namespace: Some("ns".into()), name: name.into() });
    let change = Change::Reset { objects: vec![], removed: removed.to_vec() };
    cluster.observe(ManagerInput::Pod(change)).settle();
    cluster.observe(pods(all_bound())).settle();
    let mut high = required(4);
    high["spec"]["priority"] = json!(10);
    cluster.workload("high", 1, &high).settle();
    assert!(is_preempted(&cluster, "other"), "nothing is to end these pods");
}

/// A pod that is to be killed at this time at the latest.
fn deleting_until(mut pod: Value, time: &str) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!(time);
    pod
}

fn with_preemption(cluster: &mut Cluster) {
    cluster.queue(&json!({
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "40"}]}],
        }],
    }));
}

/// Pods without a Workload terminate on all of rack `a`, `other` runs on rack `b`, and `high` may preempt it.
fn terminating_until(time: &str) -> Cluster {
    let mut cluster = running();
    with_preemption(&mut cluster);
    cluster.delete("train");
    let all = PLACES.map(|(name, node)| deleting_until(bound(name, node, 90), time));
    cluster.observe(pods(all.to_vec()));
    cluster.workload("other", 1, &required(4)).settle();
    assert_eq!(rack(&cluster, "other"), Some('b'));
    let mut high = required(4);
    high["spec"]["priority"] = json!(10);
    cluster.workload("high", 1, &high).settle();
    cluster
}

fn is_preempted(cluster: &Cluster, name: &str) -> bool {
    cluster.condition(name, "Evicted").starts_with("True")
}

#[test]
fn a_preemptor_waits_for_pods_that_no_controller_deletes_for_ten_minutes() {
    let mut cluster = running();
    with_preemption(&mut cluster);
    cluster.workload("other", 1, &required(4)).settle();
    cluster.workload("train", 1, &released("Evicted")).settle();
    let mut high = required(4);
    high["spec"]["priority"] = json!(10);
    cluster.workload("high", 1, &high).settle();
    cluster.wait(590).settle();
    assert!(!is_preempted(&cluster, "other"), "the controller may be slow");
    cluster.wait(20).settle();
    assert!(is_preempted(&cluster, "other"), "the controller may be stopped");
}

#[test]
fn a_preemptor_waits_for_deleted_pods_for_a_minute_after_their_grace_period() {
    let mut cluster = terminating_until("1970-01-01T00:00:30Z");
    cluster.wait(89).settle();
    assert!(!is_preempted(&cluster, "other"), "the pods should be gone soon");
    cluster.wait(1).settle();
    assert!(is_preempted(&cluster, "other"), "the pods may never go");
}

#[test]
fn a_preemptor_does_not_wait_for_a_long_grace_period() {
    let cluster = terminating_until("1970-01-01T00:10:01Z");
    assert!(is_preempted(&cluster, "other"));
    let mut cluster = terminating_until("1970-01-01T00:10:00Z");
    assert!(!is_preempted(&cluster, "other"));
    cluster.wait(600).settle();
    assert!(!is_preempted(&cluster, "other"));
}

#[test]
fn pods_of_an_earlier_job_do_not_leave_with_the_eviction_of_a_later_one() {
    let owner = |uid: &str| json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": true}]);
    let evicted_job = |uid: &str| {
        let mut cluster = Cluster::new();
        topology(&mut cluster);
        with_preemption(&mut cluster);
        let mut all = all_bound();
        all.iter_mut().for_each(|pod| pod["metadata"]["ownerReferences"] = owner("old"));
        cluster.observe(pods(all));
        let mut evicted = required(4);
        json_merge(&mut evicted, &released("Evicted"));
        evicted["metadata"] = json!({"ownerReferences": owner(uid)});
        cluster.workload("train", 1, &evicted).settle();
        cluster.workload("other", 1, &required(4)).settle();
        assert_eq!(rack(&cluster, "other"), Some('b'));
        let mut high = required(4);
        high["spec"]["priority"] = json!(10);
        cluster.workload("high", 1, &high).settle();
        cluster
    };
    assert!(!is_preempted(&evicted_job("old"), "other"), "its own pods leave");
    assert!(is_preempted(&evicted_job("new"), "other"), "no eviction ends these pods");
}

#[test]
fn deleted_pods_on_former_nodes_take_room_beside_a_new_reservation() {
    let mut cluster = running();
    cluster.delete("train");
    let all = PLACES.map(|(name, node)| deleting(bound(name, node, 90)));
    cluster.observe(pods(all.to_vec()));
    cluster.workload("train", 1, &required(4)).settle();
    assert_eq!(rack(&cluster, "train"), Some('b'));
    cluster.workload("next", 1, &required(4)).settle();
    assert_eq!(rack(&cluster, "next"), None, "the old pods run still");
    for (version, (name, node)) in (95..).zip(PLACES) {
        cluster.observe(pod(ended(bound(name, node, version)))).settle();
    }
    assert_eq!(rack(&cluster, "next"), Some('a'));
}

#[test]
fn a_reservation_accounts_for_deleted_pods_on_its_nodes() {
    let mut cluster = with_workload(1);
    cluster.observe(pods(vec![deleting(bound("p0", "a1", 80))])).settle();
    cluster.workload("next", 1, &required(3)).settle();
    let places = [("a1".to_owned(), 1), ("a2".to_owned(), 2)];
    assert_eq!(assigned(&cluster, "next"), places);
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 1)]);
}
