//! Reports of workers, as copies on the hub.

use crds::v1beta2::MultiKueueCluster;
use jiff::ToSpan;

use super::{
    gang_reservation::{capacity, manager},
    *,
};

/// What is ordered about the copy of east's report.
fn copies(step: &Decisions) -> Vec<&Order> {
    let about = |one: &&Order| one.ticket.purpose.name().starts_with("capacity-copy");
    step.orders.iter().filter(about).collect()
}

fn purposes(step: &Decisions) -> Vec<&str> {
    copies(step).iter().map(|order| order.ticket.purpose.name()).collect()
}

/// The only copy that is ordered is answered so.
fn answer(control: &mut ManagerControl, step: &Decisions, answer: WriteOutcome, now: Timestamp) {
    let [order] = copies(step)[..] else { panic!("one order") };
    assert_eq!(&*order.ticket.target.key.name, "east");
    control.answered(&order.ticket.clone(), answer, now);
}

/// The copy, with what is free on its only node.
fn copy(version: &str, free: Option<&str>) -> Value {
    let mut copy = json!({"metadata": {"name": "east", "resourceVersion": version}});
    if let Some(free) = free {
        copy["status"] = capacity()["status"].clone();
        copy["status"]["nodeClasses"] = json!([{"count": 1, "free": {"cpu": free}}]);
    }
    copy
}

fn report(control: &mut ManagerControl, version: &str, free: &str, now: Timestamp) {
    let mut report = copy(version, Some(free));
    report["metadata"]["name"] = json!("local");
    let change = Change::Apply(shared(report));
    control.observe(ManagerInput::Worker("east".into(), WorkerInput::Capacity(change)), now);
}

#[test]
fn a_report_is_copied_at_once_and_then_every_ten_seconds_at_most() {
    let mut control = manager(&json!({}));
    let step = control.decide(NOW);
    assert_eq!(purposes(&step), ["capacity-copy-create"]);
    assert_eq!(purposes(&control.decide(NOW)), [""; 0], "it is being made");
    answer(&mut control, &step, WriteOutcome::done(copy("70", None)), NOW);
    report(&mut control, "7", "3", NOW);
    let step = control.decide(NOW);
    assert_eq!(purposes(&step), ["capacity-copy"], "it was empty");
    answer(&mut control, &step, WriteOutcome::done(copy("71", Some("3"))), NOW);
    assert_eq!(purposes(&control.decide(NOW)), [""; 0], "it says what there is to say");

    report(&mut control, "8", "2", NOW + 1.second());
    let step = control.decide(NOW + 1.second());
    assert_eq!((purposes(&step), step.wake), (vec![], Some(NOW + 10.seconds())));
    report(&mut control, "9", "1", NOW + 2.seconds());
    let step = control.decide(NOW + 10.seconds());
    assert_eq!(purposes(&step), ["capacity-copy"]);
    let sent: Value =
        serde_json::from_slice(copies(&step)[0].write.request().body()).expect("JSON");
    assert_eq!(sent["status"]["nodeClasses"][0]["free"]["cpu"], "1", "the newest");
}

#[test]
fn a_copy_is_created_for_each_registration() {
    let mut control = manager(&json!({}));
    let step = control.decide(NOW);
    answer(&mut control, &step, WriteOutcome::done(copy("70", None)), NOW);
    let step = control.decide(NOW);
    answer(&mut control, &step, WriteOutcome::done(copy("71", Some("8"))), NOW);
    let again = json!({
        "metadata": {"name": "east", "uid": "east-2", "resourceVersion": "80"}, "spec": {},
    });
    let again = Change::Apply(shared::<MultiKueueCluster>(again));
    control.observe(ManagerInput::MultiKueueCluster(again), NOW);
    let step = control.decide(NOW + 10.seconds());
    assert_eq!(purposes(&step), ["capacity-copy-create"]);
}

#[test]
fn a_deleted_copy_is_created_again() {
    let mut control = manager(&json!({}));
    let step = control.decide(NOW);
    answer(&mut control, &step, WriteOutcome::done(copy("70", None)), NOW);
    let step = control.decide(NOW);
    answer(&mut control, &step, WriteOutcome::Gone, NOW);
    let step = control.decide(NOW + 10.seconds());
    assert_eq!(purposes(&step), ["capacity-copy-create"]);
}

#[test]
fn a_heartbeat_is_copied_once_a_minute() {
    let mut control = manager(&json!({}));
    let step = control.decide(NOW);
    answer(&mut control, &step, WriteOutcome::done(copy("70", None)), NOW);
    let step = control.decide(NOW);
    answer(&mut control, &step, WriteOutcome::done(copy("71", Some("8"))), NOW);
    let beat = |control: &mut ManagerControl, second: i64| {
        let now = NOW + second.seconds();
        let mut report = copy(&(80 + second).to_string(), Some("8"));
        report["metadata"]["name"] = json!("local");
        report["status"]["reportedAt"] = json!(now.to_string());
        let change = WorkerInput::Capacity(Change::Apply(shared(report)));
        control.observe(ManagerInput::Worker("east".into(), change), now);
        purposes(&control.decide(now)).len()
    };
    assert_eq!([10, 20, 30, 40, 50].map(|second| beat(&mut control, second)), [0; 5]);
    assert_eq!(beat(&mut control, 60), 1, "its age is shown");
}

#[test]
fn a_clock_that_is_set_keeps_no_report_back() {
    for by in [3, -3].map(jiff::SignedDuration::from_hours) {
        let mut control = manager(&json!({}));
        let step = control.decide(NOW);
        answer(&mut control, &step, WriteOutcome::done(copy("70", None)), NOW);
        let step = control.decide(NOW);
        answer(&mut control, &step, WriteOutcome::done(copy("71", Some("8"))), NOW);
        control.clock_jumped(by);
        let later = |seconds| NOW + by + jiff::SignedDuration::from_secs(seconds);
        report(&mut control, "8", "2", later(1));
        assert_eq!(purposes(&control.decide(later(9))), [""; 0], "{by}");
        assert_eq!(purposes(&control.decide(later(10))), ["capacity-copy"], "{by}");
    }
}
