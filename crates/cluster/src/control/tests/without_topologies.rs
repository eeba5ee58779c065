//! With the gate TopologyAwareScheduling off no flavor and no pod set has a topology.

use super::{
    cluster::{Cluster, json_merge},
    life_cycle::{settings_with, with_gates},
    topologies::{body, checked, first_assignment, provisioning, required, topology},
    without_scheduler::reservation,
    *,
};

fn gate_off() -> Cluster {
    let mut cluster = with_gates("TopologyAwareScheduling=false");
    topology(&mut cluster);
    cluster
}

#[test]
fn a_flavor_of_a_topology_is_one_of_quota_alone() {
    let mut cluster = gate_off();
    cluster.workload("train", 1, &required(4)).workload("plain", 2, &json!({})).settle();
    for name in ["train", "plain"] {
        assert!(cluster.condition(name, "Admitted").starts_with("True"), "{name}");
        let assigned = &cluster.workloads[name]["status"]["admission"]["podSetAssignments"][0];
        assert_eq!(assigned.get("topologyAssignment"), None, "{name}");
    }
}

#[test]
fn a_queue_needs_no_topology() {
    let mut cluster = gate_off();
    let key = Key { namespace: None, name: "racks".into() };
    cluster.observe(ManagerInput::Topology(Change::Delete(key)));
    cluster.workload("train", 1, &required(4)).settle().wait(1).settle();
    let reserved = cluster.condition("train", "QuotaReserved");
    assert!(reserved.starts_with("True"), "{reserved}");
}

/// The start of a Job with a Workload that is stored with a reservation and these fields of its assignment.
fn started(gates: &str, fields: &Value) -> Value {
    let mut cluster = Cluster::with(settings_with(gates).without_scheduler());
    topology(&mut cluster);
    cluster.observe(ManagerInput::Job(batch_job(), jobs(vec![json!(job())]))).settle();
    let name = cluster.workloads.keys().next().expect("a Workload of the Job").clone();
    let mut status = reservation();
    json_merge(&mut status["admission"]["podSetAssignments"][0], fields);
    cluster.workload(&name, 2, &json!({"status": status}));
    for _ in 0..5 {
        let step = cluster.control.decide(cluster.now);
        let start = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Start);
        if let Some(order) = start {
            return body(&order.write);
        }
        cluster.take(step);
    }
    panic!("the Job does not start: {:?}", cluster.workloads[&name]);
}

#[test]
fn a_stored_assignment_and_a_stored_delay_gate_no_pods() {
    let domains = json!({"levels": ["kubernetes.io/hostname"], "slices": [{
        "domainCount": 1, "podCounts": {"universal": 2},
        "valuesPerLevel": [{"universal": "a1"}],
    }]});
    for stored in
        [json!({"topologyAssignment": domains}), json!({"delayedTopologyRequest": "Ready"})]
    {
        let gates = |gate: &str| {
            let job = started(gate, &stored);
            job["spec"]["template"]["spec"].get("schedulingGates").cloned()
        };
        let gated = json!([{"name": "kueue.x-k8s.io/topology"}]);
        assert_eq!(gates("TopologyAwareScheduling=true"), Some(gated), "{stored}");
        assert_eq!(gates("TopologyAwareScheduling=false"), None, "{stored}");
    }
}

#[test]
fn a_stored_delay_ends_without_a_topology() {
    let mut before = Cluster::new();
    topology(&mut before);
    provisioning(&mut before);
    before.workload("train", 1, &required(4)).settle();
    assert_eq!(first_assignment(&before, "train")["delayedTopologyRequest"], "Pending");
    let mut cluster = gate_off();
    provisioning(&mut cluster);
    cluster.workload("train", 1, &before.workloads["train"]).settle();
    cluster.workload("train", 1, &checked()).settle().wait(1).settle();
    assert!(cluster.condition("train", "Admitted").starts_with("True"));
    let assignment = first_assignment(&cluster, "train");
    // With the gate on again, a delay would gate pods that no assignment ungates.
    assert_eq!(assignment.get("delayedTopologyRequest"), None);
    assert_eq!(assignment.get("topologyAssignment"), None);
}
