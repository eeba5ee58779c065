//! Pods of elastic jobs lose their gate as far as the admitted slice of their job grants.

use jiff::SignedDuration;

use super::{
    dispatched::{done, orders},
    measured::gate_removed,
    topologies::{body, reduced},
    *,
};

const GATE: &str = "kueue.x-k8s.io/elastic-job";

/// A slice of the chain `first` with so many pods; admitted, or without quota.
fn slice(name: &str, version: u32, pods: u32, admitted: bool) -> Value {
    let mut slice = workload();
    slice["metadata"] = json!({
        "name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string(),
        "annotations": {
            "kueue.x-k8s.io/elastic-job": "true", "kueue.x-k8s.io/workload-slice-name": "first",
        },
    });
    slice["spec"]["podSets"][0]["count"] = json!(pods);
    let held = &mut slice["status"]["admission"]["podSetAssignments"][0];
    (held["count"], held["resourceUsage"]) = (json!(pods), json!({"cpu": pods.to_string()}));
    if !admitted {
        slice["status"] = json!({});
    }
    slice
}

fn pod(name: &str, version: u32, gated: bool) -> Value {
    let gates =
        if gated { json!([{"name": GATE}, {"name": "example.com/other"}]) } else { json!([]) };
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string(),
            "labels": {"kueue.x-k8s.io/podset": "main"},
            "annotations": {"kueue.x-k8s.io/workload-slice-name": "first"},
        },
        "spec": {"schedulingGates": gates, "containers": [{"name": "main"}]},
        "status": {"phase": "Pending"},
    })
}

fn changed(pod: Value) -> ManagerInput {
    ManagerInput::ElasticPod(Change::Apply(reduced(pod)))
}

fn control(workloads: &[Value], pods: Vec<Value>) -> ManagerControl {
    let mut control = control_of_workloads(workloads);
    let objects = pods.into_iter().map(reduced).collect();
    let all = ManagerInput::ElasticPod(Change::Reset { objects, removed: vec![] });
    control.observe(all, NOW);
    control
}

fn ungated(step: &Decisions) -> Vec<String> {
    let orders = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::UngateElastic);
    let name = |order: &Order| {
        // The gate of another component stays, and no other version of the pod is written.
        let body = body(&order.write);
        assert_eq!(body["spec"], json!({"schedulingGates": [{"name": "example.com/other"}]}));
        assert!(body["metadata"]["resourceVersion"].is_string(), "{body}");
        order.ticket.target.key.name.to_string()
    };
    orders.map(name).collect()
}

#[test]
fn as_many_pods_start_as_the_slice_grants() {
    let pods =
        vec![pod("b", 41, true), pod("a", 42, false), pod("c", 43, true), pod("d", 44, true)];
    let mut control = control(&[slice("first", 21, 3, true)], pods);
    let step = control.decide(NOW);
    assert_eq!(ungated(&step), ["b", "c"], "{:?}", orders(&step));
    // The watch is late, and a pod of a lower name comes: no share is given twice.
    control.observe(changed(pod("a2", 45, true)), NOW);
    assert_eq!(ungated(&control.decide(NOW)), Vec::<String>::new());
    let gone = Key { namespace: Some("ns".into()), name: "a".into() };
    control.observe(ManagerInput::ElasticPod(Change::Delete(gone)), NOW);
    assert_eq!(ungated(&control.decide(NOW)), ["a2"]);
}

#[test]
fn a_write_without_effect_gives_its_share_back() {
    let pods = vec![pod("b", 41, true), pod("c", 42, true)];
    let mut control = control(&[slice("first", 21, 1, true)], pods);
    let step = control.decide(NOW);
    assert_eq!(ungated(&step), ["b"]);
    let order = &step.orders[0];
    control.answered(&order.ticket, WriteOutcome::Stale, NOW);
    assert_eq!(ungated(&control.decide(NOW)), Vec::<String>::new(), "another version is awaited");
    control.observe(changed(pod("b", 50, true)), NOW);
    assert_eq!(ungated(&control.decide(NOW)), ["b"]);
}

#[test]
fn pods_start_once_the_larger_slice_is_admitted() {
    let old = slice("first", 21, 1, true);
    let mut new = slice("second", 22, 2, false);
    new["metadata"]["annotations"]["kueue.x-k8s.io/workload-slice-replacement-for"] =
        json!("ns/first");
    let mut control = control(&[old, new.clone()], vec![pod("a", 41, false), pod("b", 42, true)]);
    let step = control.decide(NOW);
    assert_eq!(ungated(&step), Vec::<String>::new());
    let mut admitted = slice("second", 30, 2, true);
    admitted["metadata"]["annotations"] = new["metadata"]["annotations"].clone();
    done(&mut control, &step, "reserve", admitted, NOW);
    assert_eq!(ungated(&control.decide(NOW)), ["b"]);
}

#[test]
fn the_removal_of_a_gate_is_measured_from_the_admission() {
    let mut slice = slice("first", 21, 1, true);
    for condition in slice["status"]["conditions"].as_array_mut().expect("conditions") {
        condition["lastTransitionTime"] = json!(NOW.to_string());
    }
    let mut control = control(&[slice], vec![pod("b", 41, true)]);
    let step = control.decide(NOW);
    let later = NOW + SignedDuration::from_secs(3);
    done(&mut control, &step, "ungate-elastic", pod("b", 42, false), later);
    let measured = control.decide(later).measurements;
    let expected = gate_removed(GATE, false, 3);
    assert!(measured.contains(&expected), "{measured:?}");
}
