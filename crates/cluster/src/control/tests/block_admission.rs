//! `waitForPodsReady.blockAdmission`.

use config::WaitForPodsReady;

use super::{cluster::Cluster, *};

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
            ManagerInput::Job(..) => ManagerInput::Job(batch_job(), jobs(vec![])),
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
    let answer = WriteOutcome::done(admitted("a", "40", false));
    control.answered(&ticket, answer, NOW);
    let later = NOW + jiff::SignedDuration::from_secs(5);
    let step = control.decide(later);
    assert_eq!(reserved(&step), [""; 0], "the pods of a are not ready");
    let pending = step
        .orders
        .iter()
        .find(|order| &*order.ticket.target.key.name == "bb")
        .expect("the reason is written");
    assert_eq!(pending.ticket.purpose, Purpose::Pending);

    let ready = shared(admitted("a", "41", true));
    control.observe(ManagerInput::Workload(Change::Apply(ready)), later);
    // The reason is under way, and is answered first.
    let status = json!({"conditions": [
        {"type": "QuotaReserved", "status": "False", "reason": "WaitingForPodsReady", "message": ""},
    ]});
    let answer = WriteOutcome::done(alone("bb", "42", &status));
    control.answered(&pending.ticket.clone(), answer, later);
    assert_eq!(reserved(&control.decide(later)), ["bb"]);
}

#[test]
fn the_workload_that_was_kept_out_goes_first_when_the_gate_opens() {
    let file = WaitForPodsReady { block_admission: true, ..WaitForPodsReady::default() };
    let mut settings = settings();
    settings.core.pods_ready = Some(PodsReadyPolicy::from(&file));
    settings.core.scheduler.block_admission = true;
    // The Workload that timed out is first in the queue again.
    settings.core.scheduler.index.eviction_timestamp = false;
    let mut cluster = Cluster::with(settings);
    cluster.workload("late", 5, &json!({})).settle();
    assert!(cluster.condition("late", "Admitted").starts_with("True"));
    cluster.wait(10).workload("kept-out", 3, &json!({})).settle();
    cluster.wait(10).workload("behind", 3, &json!({})).settle();
    cluster.wait(10).settle();
    let why = "False WaitingForPodsReady: waiting for all admitted workloads to be in PodsReady condition";
    assert_eq!(cluster.condition("kept-out", "QuotaReserved"), why);
    let released = json!([
        {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": ""},
        {"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout", "message": ""},
        {"type": "Requeued", "status": "True", "reason": "BackoffFinished", "message": ""},
    ]);
    cluster.take_writes();
    let status = json!({"status": {"admission": null, "conditions": released}});
    cluster.workload("late", 5, &status).settle();
    let writes = cluster.take_writes();
    let reserves: Vec<_> = writes.iter().filter(|one| one.starts_with("reserve")).collect();
    assert_eq!(reserves, ["reserve kept-out"]);
    // What was kept out and is gone keeps nothing else out.
    let key = Key { namespace: Some("ns".into()), name: "kept-out".into() };
    cluster.observe(ManagerInput::Workload(Change::Delete(key.clone()))).settle();
    assert!(cluster.control.core.workloads.get(&key).is_none());
    let writes = cluster.take_writes();
    assert_eq!(writes.iter().filter(|one| one.starts_with("reserve")).count(), 1, "{writes:?}");
}

#[test]
fn a_workload_that_was_kept_out_and_does_not_fit_any_more_keeps_no_other_out() {
    let mut settings = settings();
    let file = WaitForPodsReady { block_admission: true, ..WaitForPodsReady::default() };
    settings.core.pods_ready = Some(PodsReadyPolicy::from(&file));
    settings.core.scheduler.block_admission = true;
    let mut cluster = Cluster::with(settings);
    cluster.workload("first", 2, &json!({})).settle();
    cluster.wait(1).workload("kept-out", 6, &json!({})).settle();
    cluster.wait(1).workload("behind", 3, &json!({})).settle();
    let less = json!({"resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "5"}]}],
    }]});
    cluster.queue(&less).settle();
    let ready = json!({"type": "PodsReady", "status": "True", "reason": "Started", "message": ""});
    let mut conditions = cluster.workloads["first"]["status"]["conditions"].clone();
    conditions.as_array_mut().expect("a list").retain(|one| one["type"] != "PodsReady");
    conditions.as_array_mut().expect("a list").push(ready);
    cluster.take_writes();
    cluster.workload("first", 2, &json!({"status": {"conditions": conditions}})).settle();
    let writes = cluster.take_writes();
    assert!(writes.contains(&"reserve behind".to_owned()), "{writes:?}");
}

/// The gate is closed by `late`; the only queue may preempt.
fn with_preemption() -> Cluster {
    let file = WaitForPodsReady { block_admission: true, ..WaitForPodsReady::default() };
    let mut settings = settings();
    settings.core.pods_ready = Some(PodsReadyPolicy::from(&file));
    settings.core.scheduler.block_admission = true;
    let mut cluster = Cluster::with(settings);
    cluster.queue(&json!({"preemption": {"withinClusterQueue": "LowerPriority"}}));
    cluster.workload("late", 5, &json!({"spec": {"priority": -5}})).settle();
    assert!(cluster.condition("late", "Admitted").starts_with("True"));
    cluster
}

#[test]
fn a_gate_that_opens_wakes_workloads_of_a_queue_that_may_preempt() {
    let mut cluster = with_preemption();
    cluster.wait(10).workload("kept-out", 3, &json!({})).settle();
    cluster.wait(10).settle();
    assert!(
        cluster.condition("kept-out", "QuotaReserved").starts_with("False WaitingForPodsReady")
    );
    let mut status = cluster.workloads["late"]["status"].clone();
    let conditions = status["conditions"].as_array_mut().expect("conditions");
    conditions.retain(|one| one["type"] != "PodsReady");
    conditions
        .push(json!({"type": "PodsReady", "status": "True", "reason": "Started", "message": ""}));
    let spec = json!({"priority": -5});
    cluster.workload("late", 5, &json!({"spec": spec, "status": status})).settle();
    cluster.wait(10).settle();
    assert!(cluster.condition("kept-out", "Admitted").starts_with("True"));
}

#[test]
fn nothing_is_preempted_behind_a_closed_gate() {
    let mut cluster = with_preemption();
    cluster.workload("fits", 1, &json!({"spec": {"priority": 9}}));
    cluster.workload("preempts", 9, &json!({"spec": {"priority": 7}})).settle();
    cluster.wait(10).settle();
    assert!(cluster.condition("fits", "QuotaReserved").starts_with("False WaitingForPodsReady"));
    assert!(cluster.condition("late", "Evicted").starts_with("none"));
}

#[test]
fn a_set_on_a_worker_blocks_nothing_for_its_pods_are_ready_there() {
    let (mut control, step) = two_wait(true);
    let order = step.orders.into_iter().find(|order| order.ticket.purpose == Purpose::Reserve);
    let mut set = admitted("a", "40", false);
    set["metadata"]["annotations"] = json!({
        "kueue.x-k8s.io/is-group-workload": "true", "kueue.x-k8s.io/job-owner-name": "a",
    });
    set["status"]["clusterName"] = json!("east");
    control.answered(&order.expect("the order").ticket, WriteOutcome::done(set), NOW);
    assert_eq!(reserved(&control.decide(NOW)), ["bb"]);
}
