//! What a further connection to a worker shows: versions that went back, and lists that the worker forbids for a while.

use runtime::watch::Unavailable;

use super::{
    dispatched::{
        connect, copies, dispatching, east, hub_job, hub_workload, linked, nominated, orders,
        running,
    },
    *,
};

/// A manager with a Job that runs on `east`: clone and Job there have this version.
fn running_at(version: &str) -> ManagerControl {
    let mut workload = hub_workload();
    workload["status"]["conditions"][2]["status"] = json!("True");
    let mut control = dispatching(&hub_job("20", false, &running()), &[workload]);
    let (clone, copy) = copies_at(version);
    connect(&mut control, vec![clone], vec![copy]);
    control.decide(NOW);
    control
}

/// Clone and Job of this version.
fn copies_at(version: &str) -> (Value, Value) {
    let (mut clone, mut copy) = copies();
    for object in [&mut clone, &mut copy] {
        object["metadata"]["resourceVersion"] = json!(version);
    }
    (clone, copy)
}

/// Answers the reads of `east` that settle creates, with the 404 of a program between for Jobs. Returns whether the Workload is withdrawn
/// then, which needs every create to be settled.
fn withdrawn_after_reads(is_served: bool) -> bool {
    let waiting = hub_job("20", true, &json!({}));
    let mut control = dispatching(&waiting, &[nominated("21", false)]);
    connect(&mut control, vec![], vec![]);
    for order in control.decide(NOW).orders {
        if order.ticket.purpose.is_create() {
            control.answered(&order.ticket, WriteOutcome::Unknown(String::new()), NOW);
        }
    }
    if !is_served {
        let change = Change::Unavailable { reason: Unavailable::NotServed, removed: vec![] };
        control.observe(east(WorkerInput::Job(batch_job(), change)), NOW);
    }
    let evicted = shared(nominated("22", true));
    control.observe(ManagerInput::Workload(Change::Apply(evicted)), NOW);
    let mut sent = Vec::new();
    for second in 1..100 {
        let now = NOW + jiff::SignedDuration::from_secs(second);
        let step = control.decide(now);
        sent.extend(orders(&step));
        for order in step.orders.iter().filter(|one| one.ticket.purpose == Purpose::Settle) {
            let nothing = json!({"metadata": {"resourceVersion": "90"}, "items": []});
            let answer = if order.ticket.target.subject == Subject::Workload {
                WriteOutcome::done(nothing)
            } else {
                let (reason, message) = (String::new(), "default backend - 404".to_owned());
                WriteOutcome::Refused { code: 404, reason, message }
            };
            control.answered(&order.ticket, answer, now);
        }
    }
    let n_reads = sent.iter().filter(|one| *one == "east settle").count();
    assert!(n_reads < 12, "{n_reads} reads in 99 seconds");
    sent.contains(&"hub raise-epoch".to_owned())
}

#[test]
fn a_404_of_a_read_settles_a_create_only_of_a_kind_that_is_not_served() {
    assert!(!withdrawn_after_reads(true), "the job may have been created");
    assert!(withdrawn_after_reads(false));
}

/// Whether the status of the copy is written to the Job.
pub(super) fn syncs_status(control: &mut ManagerControl, now: Timestamp) -> bool {
    let step = control.decide(now);
    step.orders.iter().any(|order| order.ticket.purpose == Purpose::SyncStatus)
}

#[test]
fn a_worker_is_followed_further_when_its_versions_went_back() {
    let mut control = running_at("900");
    control.observe(linked(false), NOW);
    control.decide(NOW);
    let (clone, mut copy) = copies_at("500");
    copy["status"] = json!({
        "succeeded": 2, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    });
    connect(&mut control, vec![clone], vec![copy]);
    assert!(syncs_status(&mut control, NOW));
}

#[test]
fn within_one_connection_an_older_version_is_ignored() {
    let mut control = running_at("900");
    let (_, mut copy) = copies_at("500");
    copy["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let copy = Arc::new(batch_job().decode(copy).expect("a Job"));
    control.observe(east(WorkerInput::Job(batch_job(), Change::Apply(copy))), NOW);
    assert!(!syncs_status(&mut control, NOW));
}

#[test]
fn a_copy_that_vanished_while_its_list_was_forbidden_is_missed_when_the_rights_are_back() {
    let mut control = running_at("50");
    control.observe(linked(false), NOW);
    control.decide(NOW);
    control.observe(linked(true), NOW);
    let hidden = || Change::Unavailable { reason: Unavailable::Forbidden, removed: vec![] };
    control.observe(east(WorkerInput::Workload(hidden())), NOW);
    let hidden = Change::Unavailable { reason: Unavailable::Forbidden, removed: vec![] };
    control.observe(east(WorkerInput::Job(batch_job(), hidden)), NOW);
    let step = orders(&control.decide(NOW));
    assert!(!step.contains(&"hub retry".to_owned()), "a forbidden list proves nothing: {step:?}");
    control.observe(east(WorkerInput::Workload(list(vec![]))), NOW);
    control.observe(east(WorkerInput::Job(batch_job(), jobs(vec![]))), NOW);
    let step = orders(&control.decide(NOW));
    assert!(step.contains(&"hub retry".to_owned()), "{step:?}");
}
