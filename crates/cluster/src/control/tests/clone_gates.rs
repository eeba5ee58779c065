//! Preemption gates of clones (docs/reference/multikueue.md §2.6).

use crds::names::dispatchers;
use jiff::ToSpan;

use super::{
    agent_queues,
    dispatched::orders,
    race::{body, clone, connect, manager_of, reserved, worker},
    *,
};
use crate::control::outbox::Ticket;

const ORCHESTRATED: &str = "MultiKueueOrchestratedPreemption=true";

const GATE: &str = "kueue.x-k8s.io/multikueue";

/// The clone of a worker that would have to preempt for it since so many seconds before now, and the time at which its gate was opened.
fn gated(version: &str, blocked: i64, opened: Option<Timestamp>) -> Value {
    let mut value = clone(version, false);
    value["spec"]["preemptionGates"] = json!([{"name": GATE}]);
    let condition = json!({
        "type": "BlockedOnPreemptionGates", "status": "True", "reason": "PreemptionGated", "message": "",
        "lastTransitionTime": (NOW - blocked.seconds()).to_string(),
    });
    value["status"]["conditions"].as_array_mut().expect("a list").push(condition);
    if let Some(at) = opened {
        value["status"]["preemptionGates"] = open(at);
    }
    value
}

fn open(at: Timestamp) -> Value {
    json!([{"name": GATE, "position": "Open", "lastTransitionTime": at.to_string()}])
}

fn shows(control: &mut ManagerControl, name: &str, clone: Value) {
    worker(control, name, WorkerInput::Workload(Change::Apply(shared(clone))));
}

/// A manager of a Workload with a preemption gate of its own, the clones of which are created on `east` and `west`; and the gates that they
/// are created with.
fn dispatched_to_both(gates: &str) -> (ManagerControl, [Value; 2]) {
    let mut file = Configuration::without_file(None).expect("defaults");
    dispatchers::ALL_AT_ONCE.clone_into(&mut file.multi_kueue.dispatcher_name);
    let gates = Gates::parse(gates).expect("gates");
    let mut control = manager_of(ManagerSettings::new(&file, &gates, &kinds(), true));
    connect(&mut control, "east");
    connect(&mut control, "west");
    let step = control.decide(NOW);
    let mut hub = reserved("51", &["east", "west"]);
    hub["spec"]["preemptionGates"] = json!([{"name": "a.b/c"}]);
    dispatched::done(&mut control, &step, "reserve", hub, NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east clone-create", "west clone-create"]);
    let made = ["east", "west"].map(|name| body(&step, name)["spec"]["preemptionGates"].clone());
    for order in &step.orders {
        control.answered(&order.ticket, WriteOutcome::done(gated("60", 0, None)), NOW);
    }
    shows(&mut control, "east", gated("61", 5, None));
    shows(&mut control, "west", gated("71", 10, None));
    (control, made)
}

/// The ticket of the only order, which is for this worker.
fn opening(step: &Decisions, name: &str) -> Ticket {
    assert_eq!(orders(step), [format!("{name} open-clone-gate")]);
    let mut orders = step.orders.iter();
    let order = orders.find(|one| one.ticket.purpose == Purpose::OpenCloneGate);
    order.expect("it was ordered").ticket.clone()
}

#[test]
fn clones_have_a_closed_gate_and_the_longest_waiting_one_is_opened_first() {
    let (mut control, made) = dispatched_to_both(ORCHESTRATED);
    let closed = json!([{"name": GATE}]);
    assert_eq!(made, [closed.clone(), closed], "that of the manager is no gate of a worker");

    let step = control.decide(NOW);
    let ticket = opening(&step, "west");
    let mut paths = step.orders.iter().map(|order| order.write.request().uri().path());
    assert!(paths.any(|path| path.ends_with("/status")));
    let written = body(&step, "west");
    assert_eq!(written["status"], json!({"preemptionGates": open(NOW)}));
    assert_eq!(written["metadata"], json!({"uid": "clone", "resourceVersion": "71"}));
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "without an answer no other is opened");

    control.answered(&ticket, WriteOutcome::done(gated("72", 10, Some(NOW))), NOW);
    for seconds in [0, 299] {
        assert_eq!(orders(&control.decide(NOW + seconds.seconds())), [""; 0], "{seconds}");
    }
    opening(&control.decide(NOW + 300.seconds()), "east");
}

#[test]
fn an_opening_in_flight_delays_that_of_another_clone() {
    let (mut control, _) = dispatched_to_both(ORCHESTRATED);
    opening(&control.decide(NOW), "west");
    // By the clock of its worker it waits for longer.
    shows(&mut control, "east", gated("62", 60, None));
    assert_eq!(orders(&control.decide(NOW)), [""; 0]);
}

/// The opening on `west` has ended without an answer. By the clock of its worker the clone on `east` waits for longer.
fn unanswered() -> ManagerControl {
    let (mut control, _) = dispatched_to_both(ORCHESTRATED);
    let ticket = opening(&control.decide(NOW), "west");
    control.answered(&ticket, WriteOutcome::Unknown("connection reset".to_owned()), NOW);
    shows(&mut control, "east", gated("62", 60, None));
    control
}

#[test]
fn an_opening_whose_outcome_is_unknown_delays_that_of_another_clone() {
    let mut control = unanswered();
    assert_eq!(orders(&control.decide(NOW)), [""; 0]);
    // The request may be lost: it is repeated. It was not.
    let later = NOW + 2.seconds();
    let ticket = opening(&control.decide(later), "west");
    control.answered(&ticket, WriteOutcome::Stale, later);
    assert_eq!(orders(&control.decide(later)), [""; 0]);
    shows(&mut control, "west", gated("72", 10, Some(NOW)));
    assert_eq!(orders(&control.decide(later)), [""; 0]);
}

#[test]
fn a_clone_of_which_the_watch_shows_that_its_gate_stayed_closed_delays_no_other() {
    let mut control = unanswered();
    shows(&mut control, "west", gated("72", 10, None));
    opening(&control.decide(NOW), "east");
}

#[test]
fn a_worker_that_refuses_to_open_a_gate_loses_its_turn() {
    let refused =
        WriteOutcome::Refused { code: 403, reason: String::new(), message: "no".to_owned() };
    for answer in [refused, WriteOutcome::done(gated("72", 10, None))] {
        let (mut control, _) = dispatched_to_both(ORCHESTRATED);
        let ticket = opening(&control.decide(NOW), "west");
        control.answered(&ticket, answer, NOW);
        let ticket = opening(&control.decide(NOW), "east");
        control.answered(&ticket, WriteOutcome::done(gated("62", 5, Some(NOW))), NOW);
        assert_eq!(orders(&control.decide(NOW + 9.minutes())), [""; 0]);
        opening(&control.decide(NOW + 11.minutes()), "west");
    }
}

#[test]
fn without_the_feature_gate_clones_keep_the_gates_of_the_manager_and_closed_ones_are_opened() {
    let (mut control, made) = dispatched_to_both("");
    let own = json!([{"name": "a.b/c"}]);
    assert_eq!(made, [own.clone(), own]);
    let ticket = opening(&control.decide(NOW), "west");
    control.answered(&ticket, WriteOutcome::done(gated("72", 10, Some(NOW))), NOW);
    opening(&control.decide(NOW), "east");
}

#[test]
fn an_agent_with_queues_preempts_once_the_gate_of_the_manager_is_open() {
    let mut worker = agent_queues::worker("4", &[("n1", 8)]);
    for (name, priority) in [("low", 0), ("high", 9)] {
        // Nothing beside the agent opens the gate of another controller.
        let gates = json!([{"name": GATE}, {"name": "a.b/c"}]);
        let spec = json!({"queueName": "lq", "priority": priority, "preemptionGates": gates});
        let own = json!({"metadata": {"annotations": null}, "spec": spec});
        worker.dispatch_as(name, (1, 3), &json!({}), &own);
        worker.settle();
    }
    // What is pending is explained after a while.
    let later = NOW + 2.seconds();
    worker.settle_at(later);
    assert!(worker.is_started("low") && !worker.is_started("high"));
    assert!(agent_queues::is_true(&worker, "high", "BlockedOnPreemptionGates"));
    worker.clone_status("high", |status| status["preemptionGates"] = open(NOW));
    worker.settle_at(later);
    assert!(agent_queues::is_true(&worker, "low", "Preempted"));
}

/// The worker is not reached any more.
fn cut(control: &mut ManagerControl, name: &str) {
    let link =
        ConnectionStatus { active: false, reason: "ClientConnectionFailed", message: "x".into() };
    worker(control, name, WorkerInput::Connection(link));
}

#[test]
fn an_opening_without_an_answer_on_a_worker_that_is_not_reached_delays_others_for_the_timeout() {
    let (mut control, _) = dispatched_to_both(ORCHESTRATED);
    let ticket = opening(&control.decide(NOW), "west");
    cut(&mut control, "west");
    control.answered(&ticket, WriteOutcome::Unknown("connection reset".to_owned()), NOW);
    let openings = |step: &Decisions| {
        let all = orders(step).into_iter();
        all.filter(|order| order.ends_with("open-clone-gate")).collect::<Vec<_>>()
    };
    assert_eq!(openings(&control.decide(NOW + 299.seconds())), [""; 0]);
    assert_eq!(openings(&control.decide(NOW + 300.seconds())), ["east open-clone-gate"]);
}

#[test]
fn a_worker_that_answers_no_opening_loses_its_turn_after_the_timeout() {
    let (mut control, _) = dispatched_to_both(ORCHESTRATED);
    let (mut on_west, mut on_east) = (vec![], vec![]);
    for second in 0..=1000_i64 {
        let now = NOW + second.seconds();
        let step = control.decide(now);
        for order in &step.orders {
            let is_west = order.ticket.target.to == Destination::Worker("west".into());
            if is_west { &mut on_west } else { &mut on_east }.push(second);
            let open = WriteOutcome::done(gated("62", 5, Some(now)));
            let lost = WriteOutcome::Unknown("502 Bad Gateway".to_owned());
            control.answered(&order.ticket, if is_west { lost } else { open }, now);
        }
    }
    let east = *on_east.first().expect("it has its turn");
    assert!((300..=330).contains(&east), "{on_west:?} {on_east:?}");
    let again = on_west.iter().find(|second| **second > east).expect("it is asked again");
    assert!((900..=960).contains(again), "{on_west:?}");
}
