//! A Workload with another admission check beside that of MultiKueue.

use super::{
    dispatched::{connect, done, orders},
    gang_reservation::{manager, waiting},
    *,
};

const CHECKS: [&str; 2] = ["nodes", "workers"];

/// A manager with a ClusterQueue that has another check as well.
fn with_another_check() -> ManagerControl {
    let mut control = manager(&json!({}));
    let other = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
        "metadata": {"name": "nodes", "resourceVersion": "30"},
        "spec": {"controllerName": "example.com/nodes"},
        "status": {"conditions": [
            {"type": "Active", "status": "True", "reason": "Active", "message": ""},
        ]},
    });
    control.observe(ManagerInput::AdmissionCheck(Change::Apply(shared(other))), NOW);
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {"name": "cq", "resourceVersion": "31"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [{
                "coveredResources": ["cpu"],
                "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "100"}]}],
            }],
            "admissionChecksStrategy": {"admissionChecks": CHECKS.map(|name| json!({"name": name}))},
        },
    });
    control.observe(ManagerInput::ClusterQueue(Change::Apply(shared(queue))), NOW);
    connect(&mut control, vec![], vec![]);
    // The copy of the report is written here.
    control.decide(NOW);
    control
}

/// The Workload as the API server holds it, with the states of its checks.
fn reserved(version: &str, nodes: &str) -> Value {
    let mut value = waiting("train", 1, 1);
    let owner = workload()["metadata"]["ownerReferences"].clone();
    value["metadata"]["ownerReferences"] = owner;
    value["metadata"]["resourceVersion"] = json!(version);
    value["status"] = json!({
        "admission": {"clusterQueue": "cq", "podSetAssignments": [
            {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}},
        ]},
        "conditions": [
            {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""},
        ],
        "admissionChecks": [
            {"name": "nodes", "state": nodes, "message": ""},
            {"name": "workers", "state": "Pending", "message": ""},
        ],
    });
    value
}

fn observe(control: &mut ManagerControl, workload: Value) {
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
}

/// The status that the only order for this purpose writes.
fn written(step: &Decisions, purpose: &str) -> Value {
    let order = step.orders.iter().find(|order| order.ticket.purpose.name() == purpose);
    let body = order.expect("it was ordered").write.request().body();
    serde_json::from_slice::<Value>(body).expect("JSON")["status"].clone()
}

#[test]
fn no_cluster_is_nominated_and_nothing_created_before_every_other_check_is_ready() {
    let mut control = with_another_check();
    let pending = waiting("train", 1, 1);
    observe(&mut control, pending);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub reserve"]);
    assert_eq!(written(&step, "reserve").get("nominatedClusterNames"), None);

    done(&mut control, &step, "reserve", reserved("40", "Pending"), NOW);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "the nodes are not there");

    observe(&mut control, reserved("41", "Ready"));
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub reserve"]);
    assert_eq!(written(&step, "reserve")["nominatedClusterNames"], json!(["east"]));

    let mut nominated = reserved("42", "Ready");
    nominated["status"]["nominatedClusterNames"] = json!(["east"]);
    done(&mut control, &step, "reserve", nominated, NOW);
    assert_eq!(orders(&control.decide(NOW)), ["east clone-create"]);
}

#[test]
fn a_process_that_does_not_know_the_choice_chooses_again() {
    let mut control = with_another_check();
    observe(&mut control, reserved("41", "Ready"));
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub reserve"]);
    assert_eq!(written(&step, "reserve")["nominatedClusterNames"], json!(["east"]));
}

#[test]
fn quota_is_given_back_if_no_cluster_has_room_any_more() {
    let mut control = with_another_check();
    control.observe(dispatched::linked(false), NOW);
    observe(&mut control, reserved("41", "Ready"));
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub unplace"]);
}

#[test]
fn a_gate_ends_a_reservation_unless_worker_clusters_are_nominated() {
    let gated = |nominated: &Value| {
        let mut value = reserved("41", "Pending");
        value["status"]["nominatedClusterNames"] = nominated.clone();
        value["metadata"]["annotations"] =
            json!({"kueue.x-k8s.io/admission-gated-by": "example.com/gate"});
        let mut control = with_another_check();
        observe(&mut control, value);
        control.decide(NOW)
    };
    let ended = gated(&json!([]));
    assert_eq!(written(&ended, "suspend")["conditions"][0]["reason"], "AdmissionGated");
    let kept = orders(&gated(&json!(["east"])));
    assert!(!kept.contains(&"hub suspend".to_owned()), "{kept:?}");
}
