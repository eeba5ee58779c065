//! Statuses of copies that are too large to be written on the manager.

use super::{
    dispatched::{
        connect, copies, dispatching, dispatching_lists, done, east, hub_job, hub_workload, running,
    },
    *,
};
use crate::control::outbox::after;

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// A status of a megabyte.
fn huge(mut status: Value) -> Value {
    let text = "x".repeat(1 << 20);
    status["completedIndexes"] = json!(text);
    status["later"] = json!({"deep": [text]});
    status["conditions"][0]["message"] = json!(text);
    status
}

/// The statuses that a decision writes to the hub's job.
fn written(step: &Decisions) -> Vec<Value> {
    let synced = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::SyncStatus);
    let body = |order: &Order| -> Value {
        assert!(order.write.request().body().len() < 10_000, "it is small");
        serde_json::from_slice(order.write.request().body()).expect("JSON")
    };
    synced.map(|order| body(order)["status"].clone()).collect()
}

fn warnings(step: &Decisions) -> Vec<&str> {
    step.events
        .iter()
        .map(|one| &*one.reason)
        .filter(|reason| *reason == "StatusTooLarge")
        .collect()
}

#[test]
fn a_status_over_the_limit_is_cut_and_reported_once() {
    let mut control = dispatching(&hub_job("20", false, &json!({})), &[hub_workload()]);
    let (clone, mut copy) = copies();
    copy["status"] = huge(running());
    connect(&mut control, vec![clone], vec![copy.clone()]);
    let step = control.decide(NOW);
    assert_eq!(warnings(&step), ["StatusTooLarge"]);
    let [status] = &*written(&step) else { panic!("one write: {:?}", step.orders) };
    assert_eq!((&status["active"], &status["ready"]), (&json!(2), &json!(2)));
    assert_eq!(status["conditions"][0]["type"], "Suspended");
    assert_eq!((&status["later"], &status["completedIndexes"]), (&Value::Null, &Value::Null));
    let shown = hub_job("21", false, status);
    done(&mut control, &step, "sync-status", shown, NOW);

    copy["metadata"]["resourceVersion"] = json!("60");
    copy["status"]["completedIndexes"] = json!("y".repeat(1 << 20));
    let copy = Arc::new(batch_job().decode(copy).expect("a Job"));
    control.observe(east(WorkerInput::Job(batch_job(), Change::Apply(copy))), NOW);
    let later = control.decide(after(NOW, SECOND * 5));
    assert!(written(&later).is_empty() && warnings(&later).is_empty(), "nothing is new");
}

#[test]
fn a_status_that_is_cut_before_the_job_is_listed_is_reported_later() {
    let (clone, mut copy) = copies();
    copy["status"] = huge(running());
    let mut control = leading(capacity_settings());
    let lists = dispatching_lists(&hub_job("20", false, &json!({})), &[hub_workload()]);
    let (late, first): (Vec<_>, Vec<_>) =
        lists.into_iter().partition(|list| matches!(list, ManagerInput::Job(..)));
    first.into_iter().for_each(|list| control.observe(list, NOW));
    connect(&mut control, vec![clone], vec![copy.clone()]);
    late.into_iter().for_each(|list| control.observe(list, NOW));
    copy["metadata"]["resourceVersion"] = json!("60");
    let copy = Arc::new(batch_job().decode(copy).expect("a Job"));
    control.observe(east(WorkerInput::Job(batch_job(), Change::Apply(copy))), NOW);
    assert_eq!(warnings(&control.decide(NOW)), ["StatusTooLarge"]);
}
