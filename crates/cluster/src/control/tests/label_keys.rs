//! The node labels that a worker is asked to report by.

use jiff::ToSpan;

use super::{
    dispatched::orders,
    gang_reservation::{capacity, manager, waiting},
    *,
};

/// The write that asks for labels.
fn asked(step: &Decisions) -> Option<&Order> {
    step.orders.iter().find(|order| order.ticket.purpose == Purpose::LabelKeys)
}

fn flavor(control: &mut ManagerControl, label: &str) {
    let flavor = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
        "metadata": {"name": label, "resourceVersion": "9"}, "spec": {"nodeLabels": {label: "yes"}},
    });
    control.observe(ManagerInput::ResourceFlavor(Change::Apply(shared(flavor))), NOW);
}

fn link(control: &mut ManagerControl, active: bool) {
    let link = ConnectionStatus { active, reason: "Active", message: String::new() };
    control.observe(ManagerInput::Worker("east".into(), WorkerInput::Connection(link)), NOW);
}

#[test]
fn label_keys_are_written_when_a_worker_connects_again() {
    let mut control = manager(&json!({}));
    link(&mut control, false);
    flavor(&mut control, "zone");
    assert!(asked(&control.decide(NOW)).is_none(), "it is not connected");
    link(&mut control, true);
    assert!(asked(&control.decide(NOW)).is_none(), "what it has is not known");
    let listed = WorkerInput::Capacity(list(vec![capacity()]));
    control.observe(ManagerInput::Worker("east".into(), listed), NOW);
    assert!(asked(&control.decide(NOW)).is_some());
}

#[test]
fn label_keys_without_an_answer_are_written_again() {
    let mut control = manager(&json!({}));
    flavor(&mut control, "zone");
    let step = control.decide(NOW);
    let ticket = asked(&step).expect("a write").ticket.clone();
    control.answered(&ticket, WriteOutcome::Unknown("late".to_owned()), NOW);
    let step = control.decide(NOW);
    assert!(asked(&step).is_none(), "not at once");
    let later = step.wake.expect("a time");
    assert!(later <= NOW + 1.second());
    assert!(asked(&control.decide(later)).is_some());
}

#[test]
fn label_keys_are_written_to_a_new_cluster_capacity() {
    let mut control = manager(&json!({}));
    flavor(&mut control, "zone");
    let step = control.decide(NOW);
    let ticket = asked(&step).expect("a write").ticket.clone();
    let mut report = capacity();
    let delete = Change::Delete(Key { namespace: None, name: "local".into() });
    control.observe(ManagerInput::Worker("east".into(), WorkerInput::Capacity(delete)), NOW);
    control.decide(NOW);
    report["metadata"]["resourceVersion"] = json!("20");
    report["metadata"]["uid"] = json!("another");
    let change = Change::Apply(shared(report));
    control.observe(ManagerInput::Worker("east".into(), WorkerInput::Capacity(change)), NOW);
    control.answered(&ticket, WriteOutcome::Gone, NOW);
    let step = control.decide(NOW);
    let at_once = asked(&step).is_some();
    assert!(at_once || asked(&control.decide(step.wake.expect("a time"))).is_some());
}

/// The ClusterCapacity of `east` with these managers.
fn used_by(control: &mut ManagerControl, version: u32, managers: &Value) {
    let mut report = capacity();
    report["metadata"]["resourceVersion"] = json!(version.to_string());
    report["spec"] = json!({"managers": managers});
    let change = WorkerInput::Capacity(Change::Apply(shared(report)));
    control.observe(ManagerInput::Worker("east".into(), change), NOW);
}

/// The uid of the manager's own cluster.
fn own_cluster(control: &mut ManagerControl, uid: &str) {
    let namespace =
        json!({"metadata": {"name": "kube-system", "uid": uid, "resourceVersion": "50"}});
    control.observe(ManagerInput::Namespace(Change::Apply(shared(namespace))), NOW);
}

fn managers(step: &Decisions) -> Value {
    let order = asked(step).expect("a write");
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    assert!(body["metadata"]["resourceVersion"].is_string(), "it replaces what it has seen");
    body["spec"]["managers"].clone()
}

#[test]
fn two_managers_of_one_worker_write_their_own_entries_only() {
    let mut control = manager(&json!({}));
    own_cluster(&mut control, "hub-1");
    flavor(&mut control, "zone");
    let other = json!({"origin": "other", "cluster": "hub-2", "labelKeys": ["rack"]});
    used_by(&mut control, 20, &json!([other]));
    let own = json!({"origin": "multikueue", "cluster": "hub-1", "labelKeys": ["zone"]});
    let step = control.decide(NOW);
    assert_eq!(managers(&step), json!([other, own]));
    let ticket = asked(&step).expect("a write").ticket.clone();
    let mut stored = capacity();
    stored["metadata"]["resourceVersion"] = json!("21");
    stored["spec"] = json!({"managers": [other, own]});
    control.answered(&ticket, WriteOutcome::done(stored), NOW);
    assert!(asked(&control.decide(NOW)).is_none());
    // The other manager writes: nothing of ours has changed.
    let grown = json!({"origin": "other", "cluster": "hub-2", "labelKeys": ["rack", "row"]});
    used_by(&mut control, 22, &json!([grown, own]));
    assert!(asked(&control.decide(NOW)).is_none(), "no war");
}

/// A person sets further keys there.
#[test]
fn keys_that_no_manager_has_set_stay() {
    let mut control = manager(&json!({}));
    flavor(&mut control, "zone");
    let step = control.decide(NOW);
    let order = asked(&step).expect("a write");
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    assert!(body["spec"].get("labelKeys").is_none(), "{body}");
}

#[test]
fn hazard_8_a_worker_that_another_manager_uses_with_this_origin_is_refused() {
    let mut control = manager(&json!({}));
    own_cluster(&mut control, "hub-1");
    flavor(&mut control, "zone");
    let first = json!({"origin": "multikueue", "cluster": "hub-0", "labelKeys": []});
    used_by(&mut control, 20, &json!([first]));
    let step = control.decide(NOW);
    assert!(asked(&step).is_none(), "its entry stays");
    let message = east_message(&control);
    assert!(message.contains("hub-0") && message.contains("multiKueue.origin"), "{message}");
    let multikueue = control.dispatching.multikueue.as_ref().expect("it dispatches");
    let condition = multikueue.active_condition("east", NOW, false).expect("it was connected");
    assert_eq!((condition.status, condition.reason), (false, "OriginShared"));
    let small = waiting("small", 1, 4);
    control.observe(ManagerInput::Workload(Change::Apply(shared(small))), NOW);
    let got = orders(&control.decide(NOW));
    assert!(!got.contains(&"hub reserve".to_owned()), "nothing new is sent there: {got:?}");
    used_by(&mut control, 21, &json!([]));
    let step = control.decide(NOW);
    assert!(asked(&step).is_some(), "a person has removed the entry");
    let got = orders(&control.decide(NOW));
    assert!(orders(&step).into_iter().chain(got).any(|one| one == "hub reserve"));
}

#[test]
fn a_worker_that_drops_the_entry_is_not_asked_at_api_speed() {
    let mut control = manager(&json!({}));
    flavor(&mut control, "zone");
    let step = control.decide(NOW);
    let ticket = asked(&step).expect("a write").ticket.clone();
    let mut stored = capacity();
    stored["metadata"]["resourceVersion"] = json!("21");
    control.answered(&ticket, WriteOutcome::done(stored), NOW);
    assert!(asked(&control.decide(NOW)).is_none(), "its CRD is of an earlier version");
}
