//! The time of a worker's loss: across restarts, and while the clock of the machine is set (docs/reference/dispatch.md §8).

use jiff::{SignedDuration, ToSpan};

use super::{
    dispatched::{
        connect, copies, dispatched_to_east, dispatching, dispatching_lists, east, hub_job,
        hub_workload, linked,
    },
    *,
};

/// When the process begins.
fn begin() -> Timestamp {
    NOW + 24.hours()
}

/// A process that begins with a Workload that runs on `east`, whose MultiKueueCluster says that it is not reached since then.
fn restarted(lost: Timestamp) -> ManagerControl {
    let mut control = leading(capacity_settings());
    let lists = dispatching_lists(&hub_job("20", false, &json!({})), &[hub_workload()]);
    lists.into_iter().for_each(|input| control.observe(input, begin()));
    let condition = json!({
        "type": "Active", "status": "False", "reason": "ClientConnectionFailed", "message": "",
        "lastTransitionTime": lost.to_string(),
    });
    let east = json!({
        "metadata": {"name": "east", "resourceVersion": "8"}, "spec": {},
        "status": {"conditions": [condition]},
    });
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(east))), begin());
    control
}

/// Whether the worker counts as lost.
fn is_lost(control: &mut ManagerControl, now: Timestamp) -> bool {
    let step = control.decide(now);
    let mut retries = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::Retry);
    retries.any(|order| {
        String::from_utf8_lossy(order.write.request().body()).contains("Admitting remote lost")
    })
}

#[test]
fn the_time_of_a_loss_survives_a_restart() {
    for tries in [false, true] {
        let mut control = restarted(begin() - 10.minutes());
        if tries {
            control.observe(linked(false), begin());
        }
        assert!(!is_lost(&mut control, begin() + 299.seconds()));
        assert!(is_lost(&mut control, begin() + 300.seconds()), "15 minutes in all");
    }
}

#[test]
fn the_time_of_a_loss_runs_while_another_cluster_answers() {
    let mut control = dispatched_to_east();
    let condition = |step: &Decisions| {
        let mut orders = step.orders.iter();
        let order = orders.find(|one| one.ticket.purpose == Purpose::ClusterCondition);
        let order = order.expect("a condition");
        let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
        (order.ticket.clone(), body["status"].clone())
    };
    let (ticket, status) = condition(&control.decide(NOW));
    let connected = json!({
        "metadata": {"name": "east", "resourceVersion": "8"}, "spec": {}, "status": status,
    });
    control.answered(&ticket, WriteOutcome::done(connected), NOW);
    let changed = NOW + 10.minutes();
    let reason = "ClusterChanged";
    let link =
        ConnectionStatus { active: false, reason, message: "another cluster answers".to_owned() };
    control.observe(east(WorkerInput::Connection(link)), changed);
    let (_, status) = condition(&control.decide(changed));
    assert_eq!(status["conditions"][0]["reason"], "ClusterChanged", "{status}");
    assert!(!is_lost(&mut control, changed + 899.seconds()));
    assert!(is_lost(&mut control, changed + 900.seconds()));
}

#[test]
fn a_new_process_has_a_moment_to_reach_a_worker_that_was_lost_for_long() {
    let mut control = restarted(begin() - 5.hours());
    assert!(!is_lost(&mut control, begin() + 29.seconds()));
    assert!(is_lost(&mut control, begin() + 30.seconds()));
}

#[test]
fn a_new_process_has_the_same_moment_under_a_policy_with_a_shorter_time() {
    for (lost_for, lost_after, expected) in [
        (5.hours(), "2m", 30),
        (10.minutes(), "2m", 30),
        (1.minute(), "2m", 60),
        (5.hours(), "10s", 30),
        (0.seconds(), "10s", 30),
    ] {
        for tries in [false, true] {
            let mut control = restarted(begin() - lost_for);
            use_policy(&mut control, lost_after);
            if tries {
                control.observe(linked(false), begin());
            }
            let before = begin() + (expected - 1).seconds();
            assert!(!is_lost(&mut control, before), "{lost_for} {lost_after} {tries}");
            let then = begin() + expected.seconds();
            assert!(is_lost(&mut control, then), "{lost_for} {lost_after} {tries}");
        }
    }
}

/// The only worker has a policy with this `lostAfter`.
fn use_policy(control: &mut ManagerControl, lost_after: &str) {
    let policy = json!({
        "metadata": {"name": "quick", "resourceVersion": "8"},
        "spec": {"disconnection": {"lostAfter": lost_after}},
    });
    control.observe(ManagerInput::DispatchPolicy(Change::Apply(shared(policy))), begin());
    let config = json!({
        "metadata": {
            "name": "all", "resourceVersion": "9", "annotations": {"sluice.dev/policy": "quick"},
        },
        "spec": {"clusters": ["east"]},
    });
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), begin());
}

#[test]
fn a_loss_that_has_ended_is_not_counted_again() {
    let mut control = restarted(begin() - 10.minutes());
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control.decide(begin());
    control.observe(linked(false), begin() + 1.minute());
    assert!(!is_lost(&mut control, begin() + 15.minutes()));
    assert!(is_lost(&mut control, begin() + 16.minutes()));
}

#[test]
fn a_clock_that_jumps_loses_no_worker_and_keeps_none() {
    for hours in [3, -3] {
        let by = SignedDuration::from_hours(hours);
        let mut control = dispatching(&hub_job("20", false, &json!({})), &[hub_workload()]);
        control.observe(linked(false), begin());
        assert!(!is_lost(&mut control, begin() + 10.minutes()));
        control.clock_jumped(by);
        let later = |pause: i64| begin() + by + SignedDuration::from_mins(pause);
        let step = control.decide(later(11));
        assert!(step.wake.is_some_and(|at| at <= later(15)), "{:?}", step.wake);
        assert!(!is_lost(&mut control, later(14)), "{hours}");
        assert!(is_lost(&mut control, later(15)), "{hours}");
    }
}
