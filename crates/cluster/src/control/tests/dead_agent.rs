//! A worker whose agent is dead while its API server answers (docs/reference/dispatch.md §7).

use jiff::ToSpan;

use super::{
    backoff::{left_out, reports},
    dispatched::{connect, copies, dispatching, hub_job, hub_workload, orders},
    *,
};

/// A manager with a Workload that `east` has admitted and whose Job there nothing starts.
fn admitted_and_not_started() -> ManagerControl {
    let (clone, mut copy) = copies();
    copy["spec"]["suspend"] = json!(true);
    copy["status"] = json!({});
    let mut control = dispatching(&hub_job("20", false, &json!({})), &[hub_workload()]);
    connect(&mut control, vec![clone], vec![copy]);
    reports(&mut control);
    control.decide(NOW);
    control
}

/// The message of the check, if it becomes Retry.
fn retried(step: &Decisions) -> Option<String> {
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Retry)?;
    Some(String::from_utf8_lossy(order.write.request().body()).into_owned())
}

#[test]
fn an_agent_that_dies_between_admission_and_start_ends_in_a_refusal_with_a_reason() {
    let mut control = admitted_and_not_started();
    assert_eq!(retried(&control.decide(NOW + 59.seconds())), None);
    let message = retried(&control.decide(NOW + 60.seconds())).expect("it is given up");
    assert!(
        message.contains("Worker cluster \\\"east\\\" did not start the job in time"),
        "{message}"
    );
    let why = left_out(&mut control).expect("it is not the next choice");
    assert_eq!(why, "the job was admitted there and not started in time");
}

#[test]
fn the_deadline_of_a_start_wakes_the_manager() {
    let mut control = admitted_and_not_started();
    let wake = control.decide(NOW + 1.second()).wake.expect("the deadline");
    assert!(wake <= NOW + 60.seconds(), "{wake}");
}

#[test]
fn a_job_that_ends_after_its_agent_died_is_finished_on_the_manager() {
    let (clone, mut copy) = copies();
    let complete = json!({"type": "Complete", "status": "True", "reason": "", "message": ""});
    copy["status"] = json!({"succeeded": 2, "conditions": [complete]});
    let mut control = dispatching(&hub_job("20", false, &json!({})), &[hub_workload()]);
    connect(&mut control, vec![clone], vec![copy.clone()]);
    let step = control.decide(NOW);
    let done = hub_job("60", false, &copy["status"]);
    dispatched::done(&mut control, &step, "sync-status", done, NOW);
    assert_eq!(orders(&control.decide(NOW)), ["hub finish"]);
}
