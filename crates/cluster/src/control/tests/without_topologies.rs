//! With the gate TopologyAwareScheduling off no flavor and no pod set has a topology.

use super::{
    cluster::Cluster,
    life_cycle::with_gates,
    topologies::{required, topology},
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
