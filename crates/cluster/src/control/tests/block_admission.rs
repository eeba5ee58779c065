//! `waitForPodsReady.blockAdmission`.

use super::*;
use crate::config::WaitForPodsReady;

/// A Workload without a job, of this version.
fn alone(name: &str, version: &str, status: &Value) -> Value {
    let mut workload = workload();
    workload["metadata"] = json!({
        "name": name, "namespace": "ns", "uid": name, "resourceVersion": version,
        "creationTimestamp": format!("2026-01-01T00:00:0{}Z", name.len()),
    });
    workload["status"] = status.clone();
    workload
}

/// The same with quota, and pods that are ready or not.
fn admitted(name: &str, version: &str, ready: bool) -> Value {
    let mut status = workload()["status"].clone();
    let ready = if ready { "True" } else { "False" };
    let noted = json!({"type": "PodsReady", "status": ready, "reason": "Started", "message": ""});
    status["conditions"].as_array_mut().expect("a list").push(noted);
    alone(name, version, &status)
}

fn reserved(step: &Decisions) -> Vec<&str> {
    let reserves = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::Reserve);
    reserves.map(|order| &*order.ticket.target.key.name).collect()
}

/// Everything is listed, two Workloads wait; what is decided then.
fn two_wait(block: bool) -> (ManagerControl, Decisions) {
    let file = WaitForPodsReady { block_admission: block, ..WaitForPodsReady::default() };
    let mut settings = settings();
    settings.core.pods_ready = Some(PodsReadyPolicy::from(&file));
    settings.core.scheduler.block_admission = block;
    let mut control = ManagerControl::new(settings);
    let both = [alone("a", "31", &json!({})), alone("bb", "32", &json!({}))];
    for input in lists() {
        let input = match input {
            ManagerInput::Workload(_) => ManagerInput::Workload(list(both.to_vec())),
            ManagerInput::Job(_) => {
                ManagerInput::Job(Change::Reset { objects: vec![], removed: vec![] })
            }
            other => other,
        };
        control.observe(input, NOW);
    }
    let step = control.decide(NOW);
    (control, step)
}

#[test]
fn admission_is_blocked_while_admitted_pods_are_not_ready_if_configured() {
    let (_, step) = two_wait(false);
    assert_eq!(reserved(&step), ["a", "bb"], "there is room for both");

    let (mut control, step) = two_wait(true);
    assert_eq!(reserved(&step), ["a"]);
    let order = step.orders.into_iter().find(|order| order.ticket.purpose == Purpose::Reserve);
    let ticket = order.expect("the order").ticket;
    let answer = WriteOutcome::Done(admitted("a", "40", false));
    control.answered(&ticket, answer, NOW);
    let later = NOW + jiff::SignedDuration::from_secs(5);
    let step = control.decide(later);
    assert_eq!(reserved(&step), [""; 0], "the pods of a are waited for");
    let told =
        step.orders.iter().find(|order| &*order.ticket.target.key.name == "bb").expect("told why");
    assert_eq!(told.ticket.purpose, Purpose::Pending);

    let ready = object(admitted("a", "41", true));
    control.observe(ManagerInput::Workload(Change::Apply(ready)), later);
    // The reason is under way, and is answered first.
    let status = json!({"conditions": [
        {"type": "QuotaReserved", "status": "False", "reason": "WaitingForPodsReady", "message": ""},
    ]});
    let answer = WriteOutcome::Done(alone("bb", "42", &status));
    control.answered(&told.ticket.clone(), answer, later);
    assert_eq!(reserved(&control.decide(later)), ["bb"]);
}
