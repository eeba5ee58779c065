//! The node labels that a worker is asked to report by.

use jiff::ToSpan;

use super::{
    gang_reservation::{capacity, manager},
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
    let link = Connection { active, reason: "Active", message: String::new() };
    control.observe(ManagerInput::Worker("east".into(), WorkerInput::Connection(link)), NOW);
}

#[test]
fn label_keys_are_written_when_a_worker_connects_again() {
    let mut control = manager(&json!({}));
    link(&mut control, false);
    flavor(&mut control, "zone");
    assert!(asked(&control.decide(NOW)).is_none(), "it is not connected");
    link(&mut control, true);
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
