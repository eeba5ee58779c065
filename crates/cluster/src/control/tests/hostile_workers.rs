//! Workers that write what they like on the copies and reports that they have (docs/reference/dispatch.md §2, §6).

use jiff::ToSpan;

use super::{
    dispatched::{
        connect, dispatching, done, east, hub_job, linked, nominated, on_east, orders, running,
    },
    incarnation::stamped,
    orphan_cleanup::{asks, confirm},
    *,
};
use crate::control::measurement::{Measurement, WorkerMeasurement};

/// The message of the check that a step writes. The check stays pending.
pub(super) fn check_message(step: &Decisions) -> Option<String> {
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Dispatched)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    let check = &body["status"]["admissionChecks"][0];
    assert_eq!(check["state"], "Pending");
    Some(check["message"].as_str().expect("a message").to_owned())
}

/// A manager of a Workload that is nominated for `east`, which has copies with this epoch.
fn with_epoch(epoch: &str) -> ManagerControl {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[nominated("21", false)]);
    let (clone, copy) = stamped(&[("sluice.dev/epoch", epoch)]);
    connect(&mut control, vec![clone], vec![copy]);
    control
}

#[test]
fn hostile_worker_forged_epochs_are_disputed_at_once_and_removed_after_a_confirmation() {
    for epoch in ["18446744073709551615", "99999999999999999999999", "never", "70000"] {
        let mut control = with_epoch(epoch);
        let step = control.decide(NOW);
        assert_eq!(on_east(&step), [""; 0], "{epoch}");
        assert!(asks(&control), "{epoch}");
        let message = check_message(&step).expect("it waits for no late Workload");
        assert!(message.starts_with("Worker cluster \"east\" has a copy"), "{message}");
        confirm(&mut control, "9", true);
        assert_eq!(on_east(&control.decide(NOW)), ["east job-delete"], "{epoch}");
    }
}

#[test]
fn the_check_says_that_a_disputed_copy_is_waited_for_until_it_is_gone() {
    let mut late = with_epoch("2");
    assert_eq!(check_message(&late.decide(NOW)), None, "its Workload may be observed late");
    assert!(check_message(&late.decide(NOW + 400.seconds())).is_some());

    let mut control = with_epoch("70000");
    let step = control.decide(NOW);
    let message = check_message(&step).expect("a message");
    assert!(message.contains("\"east\"") && message.contains("sluice.dev/cleanup=confirmed"));
    let mut shown = nominated("60", false);
    shown["status"]["admissionChecks"][0]["message"] = json!(message);
    done(&mut control, &step, "dispatched", shown, NOW);
    assert_eq!(check_message(&control.decide(NOW)), None, "it is shown");
    // A user of the worker has removed them.
    control.observe(linked(false), NOW);
    connect(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    assert_eq!(check_message(&step), Some(String::new()), "{:?}", orders(&step));
    assert!(on_east(&step).contains(&"east clone-create".to_owned()), "{:?}", on_east(&step));
}

#[test]
fn the_check_of_an_evicted_workload_says_that_a_disputed_copy_is_waited_for() {
    let mut control = with_epoch("70000");
    control.observe(ManagerInput::Workload(Change::Apply(shared(nominated("61", true)))), NOW);
    let step = control.decide(NOW);
    let message = check_message(&step).expect("its quota is kept");
    assert!(message.starts_with("Worker cluster \"east\" has a copy"), "{message}");
    assert_eq!(on_east(&step), [""; 0]);
    let mut shown = nominated("62", true);
    shown["status"]["admissionChecks"][0]["message"] = json!(message);
    done(&mut control, &step, "dispatched", shown, NOW);
    assert_eq!(check_message(&control.decide(NOW)), None, "it is shown");
}

#[test]
fn the_number_of_disputed_workloads_is_measured() {
    let measured = |control: &mut ManagerControl| {
        let all = control.decide(NOW).measurements;
        let of = |one: &Measurement| match one {
            Measurement::Worker(WorkerMeasurement::Disputes { cluster, workloads }) => {
                Some((cluster.clone(), *workloads))
            }
            _ => None,
        };
        all.iter().filter_map(of).next_back()
    };
    assert_eq!(measured(&mut with_epoch("2")), Some(("east".to_owned(), 1)));
    let mut control = dispatching(&hub_job("20", false, &running()), &[]);
    connect(&mut control, vec![], vec![]);
    assert_eq!(measured(&mut control), Some(("east".to_owned(), 0)));
}

/// A report of `east` with so many equal node classes.
fn report(version: &str, n_classes: usize) -> ManagerInput {
    let class = json!({"count": 1, "free": {"cpu": "8", "pods": "9"}});
    let report = json!({
        "metadata": {"name": "local", "resourceVersion": version}, "spec": {},
        "status": {
            "protocol": 1, "mode": "Thin", "asOf": "4", "nodeClasses": vec![class; n_classes],
        },
    });
    east(WorkerInput::Capacity(list(vec![report])))
}

#[test]
fn hostile_worker_an_oversized_report_is_named_and_not_used() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    connect(&mut control, vec![], vec![]);
    control.observe(report("7", 65), NOW);
    control.decide(NOW);
    let message = east_message(&control);
    let why = "its capacity report is not read: it has 65 node classes, 64 at most";
    assert!(message.ends_with(why), "{message}");
    let fleet = &control.dispatching.fleet;
    let id = fleet.find("east").expect("known");
    assert!(!fleet.reports(id) && !fleet.is_unreported(id), "it is waited for");
    control.observe(report("8", 64), NOW);
    control.decide(NOW);
    assert!(!east_message(&control).contains("not read"));
    assert!(control.dispatching.fleet.reports(id));
}
