//! A leader with a watch that lags behind what the former leader has written.

use super::{
    dispatched::{connect, dispatching, done, hub_job, hub_workload, on_east, orders},
    incarnation::leads_since,
    *,
};

/// Nominated for `east`, at this version.
fn nominated(version: &str) -> Value {
    let mut workload = hub_workload();
    workload["metadata"]["resourceVersion"] = json!(version);
    workload["status"]["clusterName"] = json!(null);
    workload["status"]["nominatedClusterNames"] = json!(["east"]);
    workload["status"]["admissionChecks"][0]["state"] = json!("Pending");
    workload
}

/// A leader that began at version 100 and observes this Workload. Worker `east` has nothing.
fn leader(workload: Value) -> ManagerControl {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[workload]);
    leads_since(&mut control, 100);
    connect(&mut control, vec![], vec![]);
    control
}

#[test]
fn copies_are_created_once_the_observed_version_is_known_to_be_the_newest() {
    let mut control = leader(nominated("21"));
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub confirm-version"]);
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::ConfirmVersion);
    let body = order.expect("it is ordered").write.request().body();
    let body: Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!(body["metadata"]["resourceVersion"], "21");
    assert_eq!(body["metadata"]["annotations"]["sluice.dev/term"], "9");
    done(&mut control, &step, "confirm-version", nominated("101"), NOW);
    assert_eq!(on_east(&control.decide(NOW)), ["east clone-create", "east job-create"]);
}

#[test]
fn a_move_by_the_former_leader_that_is_observed_late_makes_no_second_copy() {
    let mut control = leader(nominated("21"));
    let step = control.decide(NOW);
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::ConfirmVersion);
    let ticket = order.expect("it is ordered").ticket.clone();
    // The former leader has moved the Workload to another worker, where it runs.
    control.answered(&ticket, WriteOutcome::Stale, NOW);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0]);
    let mut moved = nominated("50");
    moved["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    moved["status"]["nominatedClusterNames"] = json!([]);
    moved["status"]["clusterName"] = json!("west");
    moved["status"]["admissionChecks"][0]["state"] = json!("Ready");
    control.observe(ManagerInput::Workload(Change::Apply(shared(moved))), NOW);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0]);
}

#[test]
fn a_version_of_this_leader_costs_no_further_write() {
    let mut control = leader(nominated("101"));
    assert_eq!(orders(&control.decide(NOW)), ["east clone-create", "east job-create"]);
}
