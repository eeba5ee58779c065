//! A worker whose agent is dead while its API server answers (docs/reference/dispatch.md §7).

use jiff::ToSpan;

use super::{
    backoff::{left_out, reports},
    dispatched::{connect, copies, dispatching, east, hub_job, hub_workload, nominated, orders},
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

/// A manager with a Workload that is nominated for `east`, where its clone waits for new nodes.
fn waits_for_new_nodes() -> ManagerControl {
    let (mut clone, mut copy) = copies();
    clone["status"]["admissionChecks"] =
        json!([{"name": "sluice-provisioning", "state": "Pending", "message": ""}]);
    clone["status"]["conditions"][1]["status"] = json!("False");
    copy["spec"]["suspend"] = json!(true);
    copy["status"] = json!({});
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[nominated("21", false)]);
    connect(&mut control, vec![clone], vec![copy]);
    reports(&mut control);
    control.decide(NOW);
    control
}

/// The agent writes its report, which counts for thirty seconds.
fn beat(control: &mut ManagerControl, second: i64) {
    let now = NOW + second.seconds();
    let report = json!({
        "metadata": {"name": "local", "resourceVersion": (60 + second).to_string()}, "spec": {},
        "status": {"protocol": 1, "mode": "Thin", "asOf": "60", "reportedAt": now.to_string()},
    });
    control.observe(east(WorkerInput::Capacity(Change::Apply(shared(report)))), now);
}

/// Whether the Job is taken back from the worker.
fn gives_up(step: &Decisions) -> bool {
    orders(step).contains(&"east job-delete".to_owned())
}

#[test]
fn new_nodes_are_waited_for_as_long_as_the_agent_reports() {
    let mut control = waits_for_new_nodes();
    for second in (0..300).step_by(10) {
        beat(&mut control, second);
        assert!(!gives_up(&control.decide(NOW + second.seconds())), "at {second}");
    }
    let wake = control.decide(NOW + 291.seconds()).wake.expect("the end of the report");
    assert!(wake <= NOW + 320.seconds(), "{wake}");
    assert!(!gives_up(&control.decide(NOW + 319.seconds())));
    assert!(gives_up(&control.decide(NOW + 320.seconds())), "the agent is dead");
    let mut control = waits_for_new_nodes();
    assert!(gives_up(&control.decide(NOW + 60.seconds())), "no agent has ever reported");
}
