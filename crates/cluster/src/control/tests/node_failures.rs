//! Nodes that fail under Workloads with a topology assignment.

use runtime::watch::Unavailable;

use super::{
    cluster::Cluster,
    life_cycle::with_gates,
    topologies::{
        assigned, body, member, node, on_node, pod, pods, reduced, required, topology,
        with_workload, without_request,
    },
    *,
};

/// Pods of the Workload `train`, two on each node of rack `a`.
fn running(cluster: &mut Cluster) {
    let places = [("p0", "a1"), ("p1", "a1"), ("p2", "a2"), ("p3", "a2")];
    let all = places.iter().zip(0..).map(|((name, node), index)| on_node(name, index, node, 80));
    cluster.observe(pods(all.collect()));
}

fn not_ready(name: &str, rack: &str, version: u32) -> ManagerInput {
    let mut node = node(name, rack, version);
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    ManagerInput::Node(Change::Apply(reduced(node)))
}

fn ready(name: &str, rack: &str, version: u32) -> ManagerInput {
    ManagerInput::Node(Change::Apply(reduced(node(name, rack, version))))
}

/// The node of a machine, with the hostname label of another name.
fn machine(host: &str, rack: &str, ready: bool, version: u32) -> Arc<Observed<WatchedNode>> {
    let mut node = node(host, rack, version);
    node["metadata"]["name"] = json!(format!("machine-{host}"));
    let status = if ready { "True" } else { "False" };
    node["status"]["conditions"] = json!([{"type": "Ready", "status": status}]);
    reduced(node)
}

/// A pod of the Workload `train` that runs on a machine.
fn on_machine(name: &str, index: u32, host: &str, version: u32) -> Value {
    let mut pod = on_node(name, index, host, version);
    pod["spec"]["nodeName"] = json!(format!("machine-{host}"));
    pod
}

/// A Workload of four pods on machines.
fn on_machines() -> Cluster {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let hosts = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")];
    let removed = hosts.map(|(host, _)| Key { namespace: None, name: host.into() }).to_vec();
    let objects = hosts.map(|(host, rack)| machine(host, rack, true, 60)).to_vec();
    cluster.observe(ManagerInput::Node(Change::Reset { objects, removed }));
    cluster.workload("train", 1, &required(4)).settle();
    cluster
}

fn gone(name: &str) -> ManagerInput {
    let namespace = Some("ns".into());
    ManagerInput::Pod(Change::Delete(Key { namespace, name: name.into() }))
}

fn unhealthy(cluster: &Cluster) -> Value {
    cluster.workloads["train"]["status"]["unhealthyNodes"].clone()
}

#[test]
fn a_failed_node_is_replaced_once_its_pods_are_gone() {
    let mut cluster = with_workload(4);
    // A third node of the rack.
    cluster.observe(ready("a3", "a", 70));
    running(&mut cluster);
    cluster.settle();
    cluster.take_writes();
    cluster.observe(not_ready("a1", "a", 90)).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "its pods still run there");
    cluster.observe(gone("p0")).settle();
    assert_eq!(cluster.take_writes(), [""; 0]);
    cluster.observe(gone("p1")).settle();
    assert_eq!(cluster.take_writes(), ["unhealthy-nodes train"], "another node may fail with it");
    cluster.wait(1).settle();
    assert_eq!(cluster.take_writes(), ["assign-topology train"]);
    assert_eq!(assigned(&cluster, "train"), [("a2".to_owned(), 2), ("a3".to_owned(), 2)]);
    assert_eq!(unhealthy(&cluster), Value::Null, "the status names no node any more");
    assert!(cluster.condition("train", "Admitted").starts_with("True"));
    // The successors of the pods go to the new node.
    cluster.observe(pod(member("p4", 0, None, 95)));
    let step = cluster.control.decide(cluster.now);
    let write = step.orders.iter().find(|order| order.ticket.purpose == Purpose::UngateTopology);
    let selector = &body(&write.expect("ungated").write)["spec"]["nodeSelector"];
    assert_eq!(selector["kubernetes.io/hostname"], "a3");
}

#[test]
fn a_workload_without_a_replacement_is_evicted() {
    let mut cluster = with_workload(4);
    running(&mut cluster);
    cluster.observe(not_ready("a1", "a", 90)).observe(gone("p0")).observe(gone("p1")).settle();
    cluster.wait(1).settle();
    let evicted = cluster.condition("train", "Evicted");
    assert!(evicted.starts_with("True NodeFailures"), "{evicted}");
}

#[test]
fn a_second_failed_node_evicts_the_workload() {
    let mut cluster = with_workload(4);
    cluster.observe(ready("a3", "a", 70)).observe(ready("a4", "a", 71));
    running(&mut cluster);
    cluster.observe(not_ready("a1", "a", 90)).observe(not_ready("a2", "a", 91));
    for name in ["p0", "p1", "p2", "p3"] {
        cluster.observe(gone(name));
    }
    cluster.settle().wait(1).settle();
    let evicted = cluster.condition("train", "Evicted");
    let message =
        "Workload eviction triggered due to multiple TAS assigned node failures, including: a1, a2";
    assert_eq!(evicted, format!("True NodeFailures: {message}"));
}

#[test]
fn a_node_that_recovers_is_no_failure() {
    let mut cluster = with_workload(4);
    let failed = json!({"status": {"unhealthyNodes": [{"name": "b1"}]}});
    running(&mut cluster);
    cluster.workload("train", 1, &failed).settle();
    assert_eq!(unhealthy(&cluster), Value::Null, "the Workload has nothing on that node");
}

#[test]
fn a_pod_that_waits_for_a_failed_node_is_ended() {
    let mut cluster = with_workload(4);
    cluster.observe(ready("a3", "a", 70));
    let places = [("p1", "a1"), ("p2", "a2"), ("p3", "a2")];
    let all = places.iter().zip(1..).map(|((name, node), index)| on_node(name, index, node, 80));
    cluster.observe(pods(all.collect())).observe(pod(member("p0", 0, Some("a1"), 81)));
    let step = cluster.control.decide(cluster.now);
    assert!(step.orders.iter().all(|one| one.ticket.purpose != Purpose::TerminatePod));
    cluster.observe(not_ready("a1", "a", 90));
    let step = cluster.control.decide(cluster.now);
    let ended = |one: &&Order| one.ticket.purpose == Purpose::TerminatePod;
    let ended: Vec<&Order> = step.orders.iter().filter(ended).collect();
    assert_eq!(ended.len(), 1, "the pods that run are not touched");
    assert_eq!(&*ended[0].ticket.target.key.name, "p0");
    let body = body(&ended[0].write);
    assert_eq!(body["status"]["phase"], "Failed");
    assert_eq!(body["status"]["conditions"][0]["reason"], "UnschedulableOnAssignedNode");
    let ticket = ended[0].ticket.clone();
    cluster.take(step);
    cluster.take_events();
    cluster.control.answered(&ticket, WriteOutcome::done(body), cluster.now);
    cluster.settle();
    let event = "p0 kueue-workload-controller PodTerminatedByKueue: Pod terminated by Kueue NodeController due to node taint";
    assert!(cluster.take_events().contains(&event.to_owned()), "announced once it is done");
}

/// The eviction ends the pods. A pod that fails before it counts as a retry of its job.
#[test]
fn pods_that_wait_for_a_second_failed_node_are_not_ended() {
    let mut cluster = with_workload(4);
    cluster.observe(ready("a3", "a", 70));
    let waiting = [("p0", "a1"), ("p1", "a1"), ("p2", "a2"), ("p3", "a2")];
    let waiting = waiting.iter().zip(0..);
    let waiting = waiting.map(|((name, node), index)| member(name, index, Some(node), 80));
    cluster.observe(pods(waiting.collect())).settle();
    cluster.observe(tainted("a1", "a", "broken", 90)).observe(tainted("a2", "a", "broken", 91));
    cluster.observe(pod(member("stray", 4, Some("b1"), 92)));
    let step = cluster.control.decide(cluster.now);
    assert_eq!(ended(&step), ["stray"], "the Workload has nothing on its node");
    cluster.take(step);
    cluster.settle().wait(1).settle();
    assert!(cluster.condition("train", "Evicted").starts_with("True NodeFailures"));
}

/// A node with a taint that pods may tolerate for some time, since this time.
fn under_maintenance(name: &str, since: Timestamp, version: u32) -> ManagerInput {
    let mut node = node(name, "a", version);
    let taint =
        json!({"key": "maintenance", "effect": "NoExecute", "timeAdded": since.to_string()});
    node["spec"] = json!({"taints": [taint]});
    ManagerInput::Node(Change::Apply(reduced(node)))
}

/// Its pods would not start otherwise, and only these show that it works.
#[test]
fn a_node_does_not_fail_while_its_taint_is_tolerated() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    for (name, version) in [("a1", 70), ("a2", 71)] {
        cluster.observe(under_maintenance(name, cluster.now, version));
    }
    let mut tolerant = required(4);
    tolerant["spec"]["podSets"][0]["template"]["spec"]["tolerations"] = json!([{"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}]);
    cluster.workload("train", 1, &tolerant).settle();
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2), ("a2".to_owned(), 2)]);
    cluster.observe(pods(vec![member("p0", 0, None, 80)]));
    assert_eq!(ungated(&mut cluster), [("p0".to_owned(), "a1".to_owned())]);
    cluster.observe(ready("a2", "a", 81)).settle().wait(3599).settle();
    assert_eq!(unhealthy(&cluster), Value::Null);
    cluster.wait(1).settle();
    assert_eq!(unhealthy(&cluster), json!([{"name": "a1"}]), "no input is needed");
}

#[test]
fn pods_that_wait_for_the_first_failed_node_end_beside_a_second_one() {
    let mut cluster = with_workload(4);
    cluster.observe(ready("a3", "a", 70));
    cluster.observe(pods(vec![member("p2", 2, Some("a2"), 80)])).settle();
    cluster.observe(tainted("a1", "a", "broken", 90)).settle();
    assert_eq!(unhealthy(&cluster), json!([{"name": "a1"}]));
    cluster.observe(pod(member("p0", 0, Some("a1"), 91)));
    cluster.observe(tainted("a2", "a", "broken", 92));
    let step = cluster.control.decide(cluster.now);
    assert_eq!(ended(&step), ["p0"]);
}

#[test]
fn the_failed_node_of_a_finished_workload_ends_no_pod() {
    let mut cluster = with_workload(4);
    cluster.observe(ready("a3", "a", 70));
    let mut conditions = cluster.workloads["train"]["status"]["conditions"].clone();
    conditions.as_array_mut().expect("conditions").push(json!({
        "type": "Finished", "status": "True", "reason": "Succeeded", "message": "",
        "lastTransitionTime": cluster.now.to_string(),
    }));
    cluster.workload("train", 1, &json!({"status": {"conditions": conditions}})).settle();
    cluster.observe(pod(member("p0", 0, Some("a1"), 81))).settle();
    cluster.observe(not_ready("a1", "a", 90));
    let step = cluster.control.decide(cluster.now);
    assert_eq!(ended(&step), [""; 0]);
}

#[test]
fn a_pod_waits_for_a_node_that_has_time_to_recover() {
    let ended_at = |gates: &str, seconds: i64| {
        let mut cluster = with_gates(gates);
        topology(&mut cluster);
        cluster.workload("train", 1, &required(4)).settle();
        cluster.observe(ready("a3", "a", 70)).settle();
        let places = [("p1", "a1"), ("p2", "a2"), ("p3", "a2")];
        let all =
            places.iter().zip(1..).map(|((name, node), index)| on_node(name, index, node, 80));
        cluster.observe(pods(all.collect())).observe(pod(member("p0", 0, Some("a1"), 81)));
        cluster.settle();
        let mut down = node("a1", "a", 90);
        let since = cluster.now.to_string();
        down["status"]["conditions"] =
            json!([{"type": "Ready", "status": "False", "lastTransitionTime": since}]);
        cluster.observe(ManagerInput::Node(Change::Apply(reduced(down)))).wait(seconds);
        let step = cluster.control.decide(cluster.now);
        ended(&step).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let by_time = "TASReplaceNodeOnPodTermination=false";
    assert_eq!(ended_at(by_time, 29), [""; 0], "it may be Ready again in time");
    assert_eq!(ended_at(by_time, 30), ["p0"], "the node has failed");
    let either = "TASReplaceNodeDueToNotReadyOverFixedTime=true";
    assert_eq!(ended_at(either, 29), ["p0"], "the end of pods decides as well");
}

#[test]
fn no_node_is_gone_while_nodes_cannot_be_observed() {
    let mut cluster = with_workload(4);
    running(&mut cluster);
    cluster.settle();
    let reason = Unavailable::Forbidden;
    let names = ["a1", "a2", "b1", "b2"].map(|name| Key { namespace: None, name: name.into() });
    let change = Change::Unavailable { reason, removed: names.to_vec() };
    cluster.observe(ManagerInput::Node(change)).observe(gone("p0")).observe(gone("p1")).settle();
    assert_eq!(unhealthy(&cluster), Value::Null);
    assert_eq!(cluster.condition("train", "Evicted"), "none");
}

#[test]
fn no_pod_is_sent_to_a_node_whose_failure_is_not_written_yet() {
    let mut cluster = with_workload(4);
    let all = [("p1", 1, "a1"), ("p2", 2, "a2"), ("p3", 3, "a2")];
    let all = all.map(|(name, index, node)| on_node(name, index, node, 80));
    cluster.observe(pods(all.to_vec())).settle();
    cluster.observe(not_ready("a1", "a", 90)).observe(pod(member("p0", 0, None, 91)));
    let step = cluster.control.decide(cluster.now);
    assert!(step.orders.is_empty(), "p1 still runs there, so the node has not failed");
    cluster.observe(ready("a1", "a", 92));
    assert_eq!(ungated(&mut cluster), [("p0".to_owned(), "a1".to_owned())], "the node recovered");
}

/// Pods that are ungated now, with their hosts.
fn ungated(cluster: &mut Cluster) -> Vec<(String, String)> {
    let step = cluster.control.decide(cluster.now);
    let writes = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::UngateTopology);
    let one = |order: &Order| {
        let host = body(&order.write)["spec"]["nodeSelector"]["kubernetes.io/hostname"].clone();
        (order.ticket.target.key.name.to_string(), host.as_str().expect("a host").to_owned())
    };
    writes.map(one).collect()
}

#[test]
fn a_node_is_found_by_its_hostname_label() {
    let mut cluster = on_machines();
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2), ("a2".to_owned(), 2)]);
    let all = [("p0", "a1"), ("p1", "a1"), ("p2", "a2")];
    let all = all.iter().zip(0..).map(|((name, host), index)| on_machine(name, index, host, 80));
    cluster.observe(pods(all.collect())).settle();
    assert_eq!(unhealthy(&cluster), Value::Null);
    assert_eq!(cluster.condition("train", "Evicted"), "none");
    cluster.observe(pod(member("p3", 3, None, 81)));
    assert_eq!(ungated(&mut cluster), [("p3".to_owned(), "a2".to_owned())]);
}

#[test]
fn the_failure_of_a_node_is_found_by_its_hostname_label() {
    let mut cluster = on_machines();
    let apply = |host, ready, version| {
        ManagerInput::Node(Change::Apply(machine(host, "a", ready, version)))
    };
    cluster.observe(apply("a3", true, 61));
    let all = [("p0", "a1"), ("p1", "a1"), ("p2", "a2"), ("p3", "a2")];
    let all = all.iter().zip(0..).map(|((name, host), index)| on_machine(name, index, host, 80));
    cluster.observe(pods(all.collect())).settle().take_writes();
    cluster.observe(apply("a1", false, 90)).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "its pods still run there");
    cluster.observe(gone("p0")).observe(gone("p1")).settle().wait(1).settle();
    assert_eq!(cluster.take_writes(), ["unhealthy-nodes train", "assign-topology train"]);
    assert_eq!(assigned(&cluster, "train"), [("a2".to_owned(), 2), ("a3".to_owned(), 2)]);
    // Two nodes for the successors, one of which leaves.
    cluster.observe(apply("a4", true, 91)).settle();
    let name = "machine-a3".into();
    cluster.observe(ManagerInput::Node(Change::Delete(Key { namespace: None, name }))).settle();
    cluster.wait(1).settle();
    assert_eq!(assigned(&cluster, "train"), [("a2".to_owned(), 2), ("a4".to_owned(), 2)]);
}

/// Pods cannot be observed any more.
fn pods_unavailable(reason: Unavailable, removed: &[&str]) -> ManagerInput {
    let key = |name: &&str| Key { namespace: Some("ns".into()), name: (*name).into() };
    ManagerInput::Pod(Change::Unavailable { reason, removed: removed.iter().map(key).collect() })
}

#[test]
fn no_node_fails_while_pods_cannot_be_observed() {
    for reason in [Unavailable::NotServed, Unavailable::Forbidden] {
        let mut cluster = with_workload(4);
        cluster.observe(ready("a3", "a", 70));
        running(&mut cluster);
        cluster.settle().take_writes();
        // What is not served any more is reported as removed; forbidden objects still exist.
        let removed: &[&str] = match reason {
            Unavailable::NotServed => &["p0", "p1", "p2", "p3"],
            Unavailable::Forbidden => &[],
        };
        cluster.observe(not_ready("a1", "a", 90)).observe(pods_unavailable(reason, removed));
        cluster.settle();
        assert_eq!(cluster.take_writes(), [""; 0], "{reason:?}");
        // The node failed meanwhile: its pods are in no list any more.
        let left =
            [("p2", 2), ("p3", 3)].map(|(name, index)| reduced(on_node(name, index, "a2", 80)));
        let removed = match reason {
            Unavailable::NotServed => Vec::new(),
            Unavailable::Forbidden => ["p0", "p1"]
                .map(|name| Key { namespace: Some("ns".into()), name: name.into() })
                .to_vec(),
        };
        let objects = left.to_vec();
        cluster
            .observe(ManagerInput::Pod(Change::Reset { objects, removed }))
            .settle()
            .wait(1)
            .settle();
        assert_eq!(
            cluster.take_writes(),
            ["unhealthy-nodes train", "assign-topology train"],
            "{reason:?}"
        );
    }
}

#[test]
fn a_node_that_failed_while_nodes_could_not_be_observed_is_replaced() {
    let mut cluster = with_workload(4);
    cluster.observe(ready("a3", "a", 70));
    running(&mut cluster);
    cluster.observe(not_ready("a1", "a", 90)).settle().take_writes();
    let reason = Unavailable::Forbidden;
    cluster.observe(ManagerInput::Node(Change::Unavailable { reason, removed: vec![] }));
    cluster.observe(gone("p0")).observe(gone("p1")).settle();
    assert_eq!(cluster.take_writes(), [""; 0]);
    // The list shows the same node.
    cluster.observe(ManagerInput::Node(Change::Reset { objects: vec![], removed: vec![] }));
    cluster.settle().wait(1).settle();
    assert_eq!(cluster.take_writes(), ["unhealthy-nodes train", "assign-topology train"]);
}

/// A Workload of the pod `p0`, which owns it.
fn of_single_pod(gates: &str) -> Cluster {
    let mut cluster = with_gates(gates);
    topology(&mut cluster);
    let mut fields = required(1);
    fields["metadata"] = json!({
        "name": "train", "namespace": "ns", "uid": "uid-train",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p0", "uid": "p0", "controller": true},
        ],
    });
    cluster.workload("train", 1, &fields).settle();
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 1)]);
    cluster
}

#[test]
fn the_workload_of_a_single_pod_keeps_its_node() {
    let mut cluster = of_single_pod("");
    cluster.observe(pod(member("p0", 0, Some("a1"), 80))).settle().take_writes();
    cluster.observe(not_ready("a1", "a", 90));
    let step = cluster.control.decide(cluster.now);
    let purposes: Vec<Purpose> = step.orders.iter().map(|one| one.ticket.purpose).collect();
    assert_eq!(purposes, [Purpose::TerminatePod], "the pod cannot be bound");
    cluster.take(step);
    cluster.settle();
    assert_eq!(cluster.take_writes(), [""; 0]);
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 1)]);
    // Without the gate it moves like any other.
    let mut moves = of_single_pod("SkipReassignmentForPodOwnedWorkloads=false");
    moves.take_writes();
    moves.observe(not_ready("a1", "a", 90)).settle().wait(1).settle();
    assert_eq!(moves.take_writes(), ["unhealthy-nodes train", "assign-topology train"]);
    assert_ne!(assigned(&moves, "train"), [("a1".to_owned(), 1)]);
}

#[test]
fn a_single_pod_whose_node_is_gone_ends() {
    let mut cluster = of_single_pod("");
    cluster.observe(not_ready("a1", "a", 90)).observe(pod(member("p0", 0, None, 91)));
    assert!(ungated(&mut cluster).is_empty(), "the node may recover");
    let name = "a1".into();
    cluster.observe(ManagerInput::Node(Change::Delete(Key { namespace: None, name })));
    let step = cluster.control.decide(cluster.now);
    let after = member("p0", 0, Some("a1"), 92);
    dispatched::done(&mut cluster.control, &step, "ungate-topology", after, cluster.now);
    let step = cluster.control.decide(cluster.now);
    let ends = |one: &Order| one.ticket.purpose == Purpose::TerminatePod;
    assert!(step.orders.iter().any(ends), "no node takes the pod");
}

/// A pod that names the Workload without the label of a pod set, as a webhook of another program may leave it.
fn unlabelled(mut pod: Value) -> Value {
    pod["metadata"]["labels"] = json!({});
    pod
}

#[test]
fn a_pod_without_a_pod_set_keeps_its_node_and_is_ended_like_any_other() {
    let mut cluster = with_workload(4);
    cluster.observe(ready("a3", "a", 70));
    cluster.observe(pods(vec![unlabelled(on_node("p0", 0, "a1", 80))])).settle().take_writes();
    cluster.observe(not_ready("a1", "a", 90)).settle().wait(2).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "it still runs there");
    cluster.observe(pod(unlabelled(member("late", 1, Some("a1"), 91))));
    let step = cluster.control.decide(cluster.now);
    let ended: Vec<&str> = ended(&step);
    assert_eq!(ended, ["late"]);
}

/// Another program may make such a pod from the template.
#[test]
fn a_pod_without_a_topology_request_keeps_the_node_of_its_workload() {
    let place = || without_request("p0", 0, Some("a1"), 80);
    let mut deleted = without_request("p0", 0, Some("a1"), 92);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut ended = without_request("p0", 0, Some("a1"), 92);
    ended["status"]["phase"] = json!("Succeeded");
    let mut of_another = place();
    of_another["metadata"]["annotations"]["kueue.x-k8s.io/workload"] = json!("other");
    of_another["metadata"]["resourceVersion"] = json!("92");
    for end in [gone("p0"), pod(deleted), pod(ended), pod(of_another)] {
        let mut cluster = with_workload(4);
        cluster.observe(ready("a3", "a", 70));
        cluster.observe(pods(vec![place()])).settle().take_writes();
        cluster.observe(not_ready("a1", "a", 90)).settle().wait(2).settle();
        assert_eq!(cluster.take_writes(), [""; 0], "it still runs there");
        cluster.observe(end).settle();
        assert_eq!(cluster.take_writes(), ["unhealthy-nodes train"]);
    }
}

/// Names of the pods that a decision ends.
fn ended(step: &Decisions) -> Vec<&str> {
    let ends = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::TerminatePod);
    ends.map(|one| &*one.ticket.target.key.name).collect()
}

#[test]
fn a_node_without_its_hostname_label_goes_by_its_name() {
    let mut cluster = with_workload(4);
    running(&mut cluster);
    cluster.settle().take_writes();
    let mut unlabeled = node("a1", "a", 90);
    unlabeled["metadata"]["labels"] = json!({"example.com/rack": "a", "pool": "tas"});
    cluster.observe(ManagerInput::Node(Change::Apply(reduced(unlabeled)))).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "the node is Ready");
    assert_eq!(unhealthy(&cluster), Value::Null);
}

/// A flavor of this name.
fn flavor(name: &str, spec: &Value, version: u32) -> ManagerInput {
    ManagerInput::ResourceFlavor(Change::Apply(shared(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
        "metadata": {"name": name, "resourceVersion": version.to_string()}, "spec": spec,
    }))))
}

/// A node with a taint that keeps other pods away.
fn tainted(name: &str, rack: &str, key: &str, version: u32) -> ManagerInput {
    let mut node = node(name, rack, version);
    node["spec"] = json!({"taints": [{"key": key, "effect": "NoSchedule"}]});
    ManagerInput::Node(Change::Apply(reduced(node)))
}

/// A flavor of the topology, with a toleration.
fn tolerating() -> Value {
    json!({
        "nodeLabels": {"pool": "tas"}, "topologyName": "racks",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    })
}

/// The pods of one pod set on tainted nodes, which their flavor tolerates; those of another one have the flavor `plain`, which has no
/// topology.
fn tolerating_through_a_flavor() -> Cluster {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let of = |flavor: &str| json!({"name": flavor, "resources": [{"name": "cpu", "nominalQuota": "40"}]});
    cluster.queue(&json!({"resourceGroups": [
        {"coveredResources": ["cpu"], "flavors": [of("default"), of("plain")]},
    ]}));
    cluster.observe(flavor("default", &tolerating(), 60)).observe(flavor("plain", &json!({}), 61));
    for (name, rack) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        cluster.observe(tainted(name, rack, "gpu", 62));
    }
    let mut fields = required(3);
    let mut driver = fields["spec"]["podSets"][0].clone();
    driver["name"] = json!("driver");
    driver["count"] = json!(1);
    driver["topologyRequest"] = Value::Null;
    fields["spec"]["podSets"].as_array_mut().expect("pod sets").push(driver);
    cluster.workload("train", 1, &fields).settle();
    assert!(cluster.condition("train", "Admitted").starts_with("True"));
    cluster
}

/// A flavor is gone.
fn delete_flavor(cluster: &mut Cluster, name: &str) {
    let key = Key { namespace: None, name: name.into() };
    cluster.observe(ManagerInput::ResourceFlavor(Change::Delete(key)));
}

#[test]
fn a_tainted_node_does_not_fail_while_a_flavor_is_missing() {
    let mut cluster = tolerating_through_a_flavor();
    cluster.observe(pod(member("late", 0, Some("a1"), 80))).settle().take_writes();
    delete_flavor(&mut cluster, "plain");
    // A change of the nodes has their health evaluated.
    for (name, version) in [("a1", 90), ("a2", 91)] {
        cluster.observe(not_ready(name, "a", version)).observe(tainted(
            name,
            "a",
            "gpu",
            version + 10,
        ));
    }
    let step = cluster.control.decide(cluster.now);
    assert_eq!(ended(&step), [""; 0], "the pods tolerate the taint");
    cluster.take(step);
    cluster.settle().wait(2).settle();
    assert_eq!(unhealthy(&cluster), Value::Null);
    assert_eq!(cluster.condition("train", "Evicted"), "none");
}

#[test]
fn a_taint_counts_again_once_the_flavor_is_there() {
    let mut cluster = tolerating_through_a_flavor();
    delete_flavor(&mut cluster, "default");
    cluster.observe(tainted("a1", "a", "broken", 90)).settle();
    assert_eq!(unhealthy(&cluster), Value::Null, "it is not known what the pods tolerate");
    cluster.take_writes();
    cluster.observe(flavor("default", &tolerating(), 95)).settle();
    assert_eq!(cluster.take_writes(), ["unhealthy-nodes train"]);
    // It is no sign of recovery that the flavor is missing again.
    delete_flavor(&mut cluster, "default");
    cluster.settle();
    assert_eq!(cluster.take_writes(), [""; 0]);
    assert_eq!(unhealthy(&cluster), json!([{"name": "a1"}]));
}

#[test]
fn the_missing_flavor_of_another_pod_set_leaves_nothing_undecided() {
    let mut cluster = tolerating_through_a_flavor();
    delete_flavor(&mut cluster, "plain");
    cluster.observe(tainted("a1", "a", "broken", 90)).settle();
    assert_eq!(unhealthy(&cluster), json!([{"name": "a1"}]));
}

/// A variant with four pods in rack `a`. The pods name its parent, `train`.
fn with_variant() -> (Cluster, String) {
    let mut cluster = with_gates("ConcurrentAdmission=true");
    topology(&mut cluster);
    let policy = json!({"migration": {"mode": "TryPreferredFlavors"}});
    cluster.queue(&json!({ "concurrentAdmissionPolicy": policy }));
    cluster.workload("train", 1, &required(4)).settle();
    let made = cluster.workloads.keys().find(|name| name.contains("variant"));
    let variant = made.expect("a variant").clone();
    (cluster, variant)
}

#[test]
fn a_failed_node_of_a_variant_is_replaced_once_its_pods_are_gone() {
    let (mut cluster, variant) = with_variant();
    cluster.observe(ready("a3", "a", 70));
    running(&mut cluster);
    cluster.settle();
    cluster.take_writes();
    cluster.observe(not_ready("a1", "a", 90)).observe(gone("p0")).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "a pod still runs there");
    cluster.observe(gone("p1")).settle();
    assert_eq!(cluster.take_writes()[..1], [format!("unhealthy-nodes {variant}")]);
}

#[test]
fn a_pod_of_a_variant_that_waits_for_a_failed_node_is_ended() {
    let (mut cluster, _) = with_variant();
    cluster.observe(ready("a3", "a", 70));
    let places = [("p1", "a1"), ("p2", "a2"), ("p3", "a2")];
    let all = places.iter().zip(1..).map(|((name, node), index)| on_node(name, index, node, 80));
    cluster.observe(pods(all.collect())).observe(pod(member("p0", 0, Some("a1"), 81))).settle();
    cluster.observe(not_ready("a1", "a", 90));
    let step = cluster.control.decide(cluster.now);
    assert_eq!(ended(&step), ["p0"]);
}
