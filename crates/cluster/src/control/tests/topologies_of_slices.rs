//! Topologies of elastic jobs: pods of an earlier workload slice count with the slice that has replaced it.

use super::{
    cluster::Cluster,
    topologies::{at, member, node, on_node, places, pod, pods, reduced, required, topology},
    *,
};

const CHAIN: &str = "kueue.x-k8s.io/workload-slice-name";

/// A slice of the chain `first`, admitted with two pods on each of these nodes.
fn slice(replaced: Option<&str>, nodes: &[&str]) -> Value {
    let counts = vec![2; nodes.len()];
    let n_pods = 2 * nodes.len();
    let mut fields = required(u32::try_from(n_pods).expect("few"));
    fields["spec"]["podSets"][0]["topologyRequest"] = json!({"unconstrained": true});
    fields["metadata"] =
        json!({"annotations": {"kueue.x-k8s.io/elastic-job": "true", CHAIN: "first"}});
    if let Some(old) = replaced {
        fields["metadata"]["annotations"]["kueue.x-k8s.io/workload-slice-replacement-for"] =
            json!(format!("ns/{old}"));
    }
    fields["status"] = workload()["status"].clone();
    fields["status"]["admission"]["podSetAssignments"][0] = json!({
        "name": "main", "count": n_pods, "flavors": {"cpu": "default"},
        "resourceUsage": {"cpu": (2 * n_pods).to_string()},
        "topologyAssignment": {"levels": ["kubernetes.io/hostname"], "slices": [{
            "domainCount": nodes.len(),
            "valuesPerLevel": [{"individual": {"roots": nodes}}],
            "podCounts": {"individual": counts},
        }]},
    });
    fields
}

/// The conditions of a slice that another one has replaced.
fn replaced() -> Value {
    let mut status = workload()["status"].clone();
    let conditions = status["conditions"].as_array_mut().expect("conditions");
    conditions.push(json!({
        "type": "Finished", "status": "True", "reason": "WorkloadSliceReplaced", "message": "",
    }));
    json!({"status": {"conditions": conditions}})
}

/// A pod of the chain that names this slice.
fn of_slice(mut pod: Value, slice: &str) -> Value {
    let annotations = &mut pod["metadata"]["annotations"];
    (annotations["kueue.x-k8s.io/workload"], annotations[CHAIN]) = (json!(slice), json!("first"));
    pod
}

/// A slice of four pods on two nodes, which has replaced one of two pods on the first node. These run.
fn grown() -> Cluster {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    cluster.workload("first", 1, &slice(None, &["a1"]));
    let running = ["p0", "p1"].map(|name| of_slice(on_node(name, 0, "a1", 80), "first"));
    cluster.observe(pods(running.to_vec())).settle();
    cluster.workload("second", 1, &slice(Some("first"), &["a1", "a2"]));
    cluster.workload("first", 1, &replaced()).settle();
    cluster.take_writes();
    cluster
}

#[test]
fn new_pods_get_the_domains_that_pods_of_the_earlier_slice_leave() {
    // The template of a job may name the earlier slice still.
    for named in ["first", "second"] {
        let mut cluster = grown();
        for (name, version) in [("p2", 90), ("p3", 91), ("p4", 92)] {
            cluster.observe(pod(of_slice(member(name, 0, None, version), named)));
        }
        let step = cluster.control.decide(cluster.now);
        assert_eq!(places(&step), at(&[("p2", "a2"), ("p3", "a2")]), "pods name {named}");
    }
}

#[test]
fn pods_start_with_the_later_slice_when_the_earlier_one_is_deleted() {
    let mut cluster = grown();
    let first = Key { namespace: Some("ns".into()), name: "first".into() };
    cluster.observe(ManagerInput::Workload(Change::Delete(first)));
    cluster.observe(pod(of_slice(member("p2", 0, None, 90), "first")));
    assert_eq!(places(&cluster.control.decide(cluster.now)), at(&[("p2", "a2")]));
}

#[test]
fn a_node_is_kept_while_pods_of_the_earlier_slice_run_there() {
    let mut cluster = grown();
    let mut down = node("a1", "a", 90);
    down["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    cluster.observe(ManagerInput::Node(Change::Apply(reduced(down)))).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "its pods still run there");
    for (name, writes) in [("p0", vec![]), ("p1", vec!["unhealthy-nodes second"])] {
        let gone = Key { namespace: Some("ns".into()), name: name.into() };
        cluster.observe(ManagerInput::Pod(Change::Delete(gone))).settle();
        assert_eq!(cluster.take_writes(), writes);
    }
}

#[test]
fn a_replaced_slice_ends_no_pods_that_wait_for_nodes_of_the_later_one() {
    let mut cluster = grown();
    cluster.observe(pod(of_slice(member("p2", 0, Some("a2"), 90), "first")));
    let gone = Key { namespace: Some("ns".into()), name: "p0".into() };
    cluster.observe(ManagerInput::Pod(Change::Delete(gone)));
    let step = cluster.control.decide(cluster.now);
    let ends = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::TerminatePod);
    assert_eq!(ends.count(), 0, "{:?}", dispatched::orders(&step));
}

#[test]
fn the_granting_slice_accounts_for_pods_of_the_chain() {
    for granted in [true, false] {
        let mut cluster = grown();
        for (name, node, version) in [("p8", "a1", 90), ("p9", "b1", 91)] {
            let mut running = of_slice(on_node(name, 0, node, version), "first");
            running["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
            cluster.observe(pod(running));
        }
        if !granted {
            cluster.workload("second", 1, &replaced());
        }
        cluster.workload("next", 1, &required(4)).settle();
        let reserved = cluster.condition("next", "QuotaReserved");
        assert_eq!(
            reserved.starts_with("True"),
            granted,
            "pods take room in both racks: {reserved}"
        );
    }
}
