//! Queued work moves to a worker that gets room (docs/reference/dispatch.md §3).

use jiff::{SignedDuration, ToSpan};

use super::{
    dispatched::{done, orders},
    gang_reservation::{self, capacity, waiting},
    race::{body, connect, created, large, worker},
    *,
};

/// The Workload `large` of 20 cpus waits for the queues of `west`, nominated at [`NOW`]; `east` reports nodes of 8 and 4 cpus.
fn queued(rebalance: &Value) -> ManagerControl {
    let mut control = manager(rebalance);
    observe(&mut control, waiting("large", 1, 20));
    let step = control.decide(NOW);
    done(&mut control, &step, "reserve", large("50", &[]), NOW);
    let step = control.decide(NOW);
    assert_eq!(nominated(&step), json!(["west"]));
    done(&mut control, &step, "reserve", large("51", &["west"]), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["west clone-create"]);
    created(&mut control, &step, "west", clone("60", false));
    control
}

/// A manager of `east`, which reports, and `west`, which runs Kueue.
fn manager(rebalance: &Value) -> ManagerControl {
    let mut control = gang_reservation::manager(&json!({"rebalance": rebalance}));
    let config = json!({
        "metadata": {"name": "all", "resourceVersion": "40", "annotations": {"sluice.dev/policy": "p"}},
        "spec": {"clusters": ["west", "east"]},
    });
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), NOW);
    let west = json!({"metadata": {"name": "west", "resourceVersion": "41"}, "spec": {}});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(west))), NOW);
    connect(&mut control, "west");
    control
}

/// A policy under which queued work moves after ten seconds.
fn policy() -> Value {
    json!({"enabled": true, "cooldown": "10s"})
}

/// When it moves.
fn rested() -> Timestamp {
    NOW + 10.seconds()
}

fn observe(control: &mut ManagerControl, workload: Value) {
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
}

/// `east` reports one node of so many free cpus.
fn room(control: &mut ManagerControl, version: &str, cpu: &str) {
    let mut report = capacity();
    report["metadata"]["resourceVersion"] = json!(version);
    report["status"]["nodeClasses"] = json!([
        {"count": 1, "free": {"cpu": cpu, "pods": "9"}, "size": {"cpu": cpu, "pods": "10"}},
    ]);
    worker(control, "east", WorkerInput::Capacity(Change::Apply(shared(report))));
}

/// The clone of `large`, as a worker holds it.
fn clone(version: &str, admitted: bool) -> Value {
    let mut copy = large(version, &[]);
    copy["metadata"]["labels"] = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    copy["metadata"]["annotations"] = json!({"sluice.dev/epoch": "1"});
    copy["metadata"]["uid"] = json!("clone");
    let status = if admitted { "True" } else { "False" };
    copy["status"] = json!({"conditions": [
        {"type": "Admitted", "status": status, "reason": "Admitted", "message": "",
         "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]});
    copy
}

fn shows(control: &mut ManagerControl, name: &str, clone: Value) {
    worker(control, name, WorkerInput::Workload(Change::Apply(shared(clone))));
}

/// A worker has deleted its clone.
fn deleted(control: &mut ManagerControl, step: &Decisions, name: &str) {
    let key = Key { namespace: Some("ns".into()), name: "large".into() };
    worker(control, name, WorkerInput::Workload(Change::Delete(key)));
    done(control, step, "clone-delete", Value::Null, NOW);
}

/// The nominated clusters of a step, `null` if it nominates none.
fn nominated(step: &Decisions) -> Value {
    if orders(step).iter().any(|one| one == "hub reserve") {
        body(step, "hub")["status"]["nominatedClusterNames"].clone()
    } else {
        Value::Null
    }
}

/// The Workload has moved to `east`, which has its clone.
fn moved(rebalance: &Value) -> ManagerControl {
    let mut control = queued(rebalance);
    room(&mut control, "7", "24");
    let step = control.decide(rested());
    assert_eq!(nominated(&step), json!(["east", "west"]));
    done(&mut control, &step, "reserve", large("52", &["east", "west"]), rested());
    let step = control.decide(rested());
    assert_eq!(orders(&step), ["east clone-create"], "no job before one admits");
    created(&mut control, &step, "east", clone("70", false));
    control
}

/// The notes of Events about moves, and the clusters that moves are counted for.
fn reports(step: &Decisions) -> (Vec<&str>, Vec<&str>) {
    let events = step.events.iter().filter(|event| event.reason == "Rebalanced");
    let counted = step.measurements.iter().filter_map(|one| match one {
        measurement::Measurement::Worker(measurement::WorkerMeasurement::Rebalanced(labels)) => {
            Some(labels.cluster.as_str())
        }
        _ => None,
    });
    (events.map(|event| event.note.as_str()).collect(), counted.collect())
}

/// The cluster that a step records.
fn recorded(step: &Decisions) -> Option<Value> {
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Dispatched)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    Some(body["status"]["clusterName"].clone())
}

/// Whether another Workload of so many cpus gets quota.
fn another_gets_in(control: &mut ManagerControl, name: &str, cpus: i32, now: Timestamp) -> bool {
    observe(control, waiting(name, 1, cpus));
    let step = control.decide(now);
    let reserves = |order: &&Order| {
        order.ticket.purpose.name() == "reserve" && *order.ticket.target.key.name == *name
    };
    let found = step.orders.iter().find(reserves);
    found.is_some_and(|order| {
        let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
        body["status"]["nominatedClusterNames"] == json!(["east"])
    })
}

#[test]
fn it_moves_to_room_and_its_place_in_the_queue_goes_when_it_is_admitted() {
    let mut control = queued(&policy());
    room(&mut control, "7", "24");
    let step = control.decide(NOW + 9.seconds());
    assert_eq!(orders(&step), [""; 0], "it stays for the cooldown");
    assert!(step.wake.is_some_and(|at| at <= rested()), "{:?}", step.wake);
    let step = control.decide(rested());
    assert_eq!(nominated(&step), json!(["east", "west"]));
    assert_eq!(reports(&step), (vec![], vec![]), "an Event follows the write");
    done(&mut control, &step, "reserve", large("52", &["east", "west"]), rested());
    let step = control.decide(rested());
    assert_eq!(orders(&step), ["east clone-create"], "no job before one admits");
    let note = "Worker cluster \"east\" has room: nominated there while the workload waits for the queues of \"west\"";
    assert_eq!(reports(&step), (vec![note], vec!["east"]));
    created(&mut control, &step, "east", clone("70", false));
    assert_eq!(orders(&control.decide(rested())), [""; 0], "its place in the queue is kept");

    shows(&mut control, "east", clone("71", true));
    let step = control.decide(rested());
    assert_eq!(orders(&step), ["west clone-delete"], "only one may run it");
    assert_eq!(reports(&step), (vec![], vec![]), "once");
    deleted(&mut control, &step, "west");
    assert_eq!(recorded(&control.decide(rested())), Some(json!("east")));
}

#[test]
fn without_the_policy_it_stays() {
    for rebalance in [json!({}), json!({"enabled": false, "cooldown": "1s", "maxMoves": 3})] {
        let mut control = queued(&rebalance);
        room(&mut control, "7", "24");
        let step = control.decide(NOW + 1.minutes());
        assert_eq!(orders(&step), [""; 0], "{rebalance}");
    }
}

#[test]
fn the_policy_says_when_and_for_what_room() {
    for (rebalance, cpu, seconds, moves) in [
        (json!({"enabled": true}), "20", 29, false),
        (json!({"enabled": true}), "20", 30, true),
        (json!({"enabled": true, "cooldown": "2m"}), "20", 119, false),
        (json!({"enabled": true, "cooldown": "2m"}), "20", 120, true),
        (json!({"enabled": true, "cooldown": "0s", "minGain": 51}), "40", 60, false),
        (json!({"enabled": true, "cooldown": "0s", "minGain": 50}), "40", 60, true),
    ] {
        let mut control = queued(&rebalance);
        room(&mut control, "7", cpu);
        let step = control.decide(NOW + seconds.seconds());
        assert_eq!(nominated(&step) == json!(["east", "west"]), moves, "{rebalance} {seconds}");
    }
}

#[test]
fn a_queue_that_admits_meanwhile_keeps_it_and_the_room_is_free() {
    let mut control = moved(&policy());
    assert!(!another_gets_in(&mut control, "first", 8, rested()), "the room is taken");
    shows(&mut control, "west", clone("61", true));
    let step = control.decide(rested());
    assert_eq!(orders(&step), ["east clone-delete"]);
    deleted(&mut control, &step, "east");
    let step = control.decide(rested());
    assert_eq!(recorded(&step), Some(json!("west")));
    assert!(another_gets_in(&mut control, "second", 8, rested()), "its room is free");
}

#[test]
fn room_is_for_what_waits_for_it() {
    let mut control = queued(&policy());
    room(&mut control, "7", "2");
    // Ten wait for the queue with quota, as many as may. The last one holds nothing.
    for other in 1..10 {
        observe(&mut control, waiting(&format!("other-{other}"), 1, 3));
    }
    control.decide(NOW);
    observe(&mut control, waiting("blocked", 1, 20));
    control.decide(NOW);
    room(&mut control, "8", "24");
    let step = control.decide(rested());
    let key = Key { namespace: Some("ns".into()), name: "blocked".into() };
    let blocked = control.core.workloads.get(&key).and_then(|one| one.transitions().reservation());
    let cluster = blocked.and_then(|reservation| reservation.cluster.as_deref());
    assert_eq!(cluster, Some("east"));
    assert_eq!(nominated(&step), Value::Null, "nothing is left for a move");
}

#[test]
fn a_worker_that_refuses_it_is_left_out_and_the_race_goes_on() {
    let mut control = moved(&policy());
    let mut refused = clone("71", false);
    refused["status"]["conditions"] = json!([
        {"type": "sluice.dev/Refused", "status": "True", "reason": "NamespaceNotAllowed", "message": "not here"},
    ]);
    shows(&mut control, "east", refused);
    let step = control.decide(rested());
    assert_eq!(orders(&step), [""; 0], "it waits for the queues of the other worker");
    assert_eq!(control.dispatching.fleet.placed_on(id(&control)), None);
    shows(&mut control, "west", clone("61", true));
    let step = control.decide(rested());
    assert_eq!(orders(&step), ["east clone-delete"]);
    deleted(&mut control, &step, "east");
    assert_eq!(recorded(&control.decide(rested())), Some(json!("west")));
}

fn id(control: &ManagerControl) -> engine::ids::WorkloadId {
    let key = Key { namespace: Some("ns".into()), name: "large".into() };
    control.core.workloads.id_of(&key).expect("it is known")
}

#[test]
fn a_worker_that_does_not_admit_in_time_keeps_no_room() {
    let mut control = moved(&policy());
    let until = rested() + 60.seconds();
    control.decide(until - 1.seconds());
    assert!(control.dispatching.fleet.placed_on(id(&control)).is_some());
    let step = control.decide(until);
    assert_eq!(orders(&step), [""; 0], "its clones stay, and any of them may still be admitted");
    assert_eq!(control.dispatching.fleet.placed_on(id(&control)), None);
    assert!(another_gets_in(&mut control, "second", 8, until), "the room is free");
    shows(&mut control, "east", clone("71", true));
    assert_eq!(orders(&control.decide(until)), ["west clone-delete"]);
}

#[test]
fn a_move_does_not_lengthen_the_time_of_the_queues() {
    let mut control = moved(&policy());
    let ends = NOW + 5.minutes();
    let step = control.decide(ends - 1.seconds());
    assert!(!orders(&step).iter().any(|one| one.contains("epoch")), "{:?}", orders(&step));
    let step = control.decide(ends);
    assert!(orders(&step).iter().any(|one| one.contains("epoch")), "{:?}", orders(&step));
}

#[test]
fn a_nomination_without_an_answer_is_written_again() {
    let mut control = queued(&policy());
    room(&mut control, "7", "24");
    let outcomes = [WriteOutcome::Unknown("timeout".into()), WriteOutcome::Stale];
    for (pause, answer) in (0..).zip(outcomes) {
        let now = rested() + (10 * pause).seconds();
        let step = control.decide(now);
        assert_eq!(nominated(&step), json!(["east", "west"]), "{answer:?}");
        answered(&mut control, &step, answer, now);
        observe(&mut control, large(&(53 + pause).to_string(), &["west"]));
    }
    let now = rested() + 20.seconds();
    let step = control.decide(now);
    assert_eq!(nominated(&step), json!(["east", "west"]));
    done(&mut control, &step, "reserve", large("60", &["east", "west"]), now);
    assert_eq!(reports(&control.decide(now)).1, ["east"], "it has moved once");
}

#[test]
fn a_move_of_what_another_writer_has_evicted_is_none() {
    let mut control = queued(&policy());
    room(&mut control, "7", "24");
    let step = control.decide(rested());
    answered(&mut control, &step, WriteOutcome::Stale, rested());
    let mut evicted = large("54", &["west"]);
    let conditions = evicted["status"]["conditions"].as_array_mut().expect("a list");
    conditions
        .push(json!({"type": "Evicted", "status": "True", "reason": "Deactivated", "message": ""}));
    observe(&mut control, evicted);
    let step = control.decide(rested());
    assert_eq!(nominated(&step), Value::Null);
    assert_eq!(orders(&step), ["west clone-delete"]);
}

/// The write of the nomination gets this answer.
fn answered(control: &mut ManagerControl, step: &Decisions, answer: WriteOutcome, now: Timestamp) {
    let order = step.orders.iter().find(|one| one.ticket.purpose.name() == "reserve");
    control.answered(&order.expect("it was ordered").ticket.clone(), answer, now);
}

/// A process that begins with the Workload nominated for these clusters.
fn restarted(nominations: &[&str]) -> ManagerControl {
    let mut control = manager(&policy());
    // Older than this leader: its predecessor may have changed it.
    observe(&mut control, large("51", nominations));
    for name in nominations {
        shows(&mut control, name, clone("60", false));
    }
    control.decide(NOW);
    control
}

#[test]
fn a_new_process_continues_a_move_and_begins_no_second_one() {
    let mut control = restarted(&["east", "west"]);
    room(&mut control, "7", "24");
    let step = control.decide(rested());
    assert_eq!(orders(&step), [""; 0], "it has moved as often as it may");
    shows(&mut control, "east", clone("71", true));
    let step = control.decide(rested());
    assert_eq!(orders(&step), ["west clone-delete"]);
    deleted(&mut control, &step, "west");
    assert_eq!(recorded(&control.decide(rested())), Some(json!("east")));
    assert_eq!(
        control.dispatching.fleet.placed_on(id(&control)),
        control.dispatching.fleet.find("east"),
        "its room is counted"
    );
}

#[test]
fn a_new_process_moves_what_waits_after_another_cooldown() {
    let mut control = restarted(&["west"]);
    room(&mut control, "7", "24");
    assert_eq!(orders(&control.decide(NOW + 9.seconds())), [""; 0]);
    assert_eq!(nominated(&control.decide(rested())), json!(["east", "west"]));
}

#[test]
fn a_clock_that_jumps_takes_the_cooldown_along() {
    for hours in [3, -3] {
        let by = SignedDuration::from_hours(hours);
        let mut control = queued(&policy());
        room(&mut control, "7", "24");
        control.clock_jumped(by);
        let early = control.decide(NOW + by + SignedDuration::from_secs(9));
        assert_eq!(orders(&early), [""; 0], "{hours}");
        let due = control.decide(NOW + by + SignedDuration::from_secs(10));
        assert_eq!(nominated(&due), json!(["east", "west"]), "{hours}");
    }
}

#[test]
fn a_worker_that_goes_before_the_nomination_keeps_no_room() {
    let mut control = queued(&policy());
    room(&mut control, "7", "24");
    let step = control.decide(rested());
    let link = ConnectionStatus { active: false, reason: "Down", message: String::new() };
    worker(&mut control, "east", WorkerInput::Connection(link));
    answered(&mut control, &step, WriteOutcome::Stale, rested());
    observe(&mut control, large("53", &["west"]));
    let step = control.decide(rested());
    assert_eq!(control.dispatching.fleet.placed_on(id(&control)), None);
    // The nomination was on its way.
    done(&mut control, &step, "reserve", large("54", &["east", "west"]), rested());
    shows(&mut control, "west", clone("61", true));
    assert_eq!(recorded(&control.decide(rested())), Some(json!("west")));
}

#[test]
fn a_clone_that_the_api_server_refuses_ends_the_move() {
    let mut control = queued(&policy());
    room(&mut control, "7", "24");
    let step = control.decide(rested());
    done(&mut control, &step, "reserve", large("52", &["east", "west"]), rested());
    let step = control.decide(rested());
    let order = step.orders.iter().find(|one| one.ticket.purpose.name() == "clone-create");
    let ticket = order.expect("it was ordered").ticket.clone();
    let (reason, message) = ("Forbidden".into(), "quota exceeded".into());
    let refused = WriteOutcome::Refused { code: 403, reason, message };
    control.answered(&ticket, refused, rested());
    let step = control.decide(rested());
    assert_eq!(orders(&step), [""; 0], "it waits for the queues of the other worker");
    assert_eq!(control.dispatching.fleet.placed_on(id(&control)), None);
}
