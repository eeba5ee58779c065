//! A Job that has succeeded on a worker that was lost (docs/reference/dispatch.md §6).

use super::{
    dispatched::{
        connect, copies, dispatching, done, hub_job, hub_workload, name, nominated, running,
    },
    incarnation::stamped,
    *,
};

const EPOCH: &str = "sluice.dev/epoch";

/// The Workload after its worker was lost: it waits again, with another epoch.
fn waiting() -> Value {
    let mut workload = hub_workload();
    workload["metadata"]["annotations"] = json!({EPOCH: "2"});
    workload["status"] = json!({});
    workload
}

fn suspended_job() -> Value {
    let mut job = hub_job("60", true, &json!({}));
    job["metadata"]["annotations"] = json!({});
    job
}

fn succeeded() -> Value {
    json!({
        "succeeded": 2, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    })
}

/// A manager of this Workload. The worker comes back with the copy of a Job of this status.
fn returned(workload: Value, status: &Value) -> ManagerControl {
    returned_with(workload, stamped(&[("sluice.dev/workload-uid", "wl-1")]), status)
}

/// The same with this clone and this Job.
fn returned_with(
    workload: Value,
    (clone, mut copy): (Value, Value),
    status: &Value,
) -> ManagerControl {
    let mut control = dispatching(&suspended_job(), &[workload]);
    copy["status"] = status.clone();
    connect(&mut control, vec![clone], vec![copy]);
    control
}

/// Purposes of writes on the hub that are about the Job or its end, and of all writes on the worker.
fn purposes(step: &Decisions) -> Vec<&str> {
    let all = step.orders.iter().map(|order| order.ticket.purpose.name());
    let matter = ["sync-status", "finish", "stop", "job-delete", "clone-delete", "job-create"];
    all.filter(|purpose| matter.contains(purpose)).collect()
}

fn notes(step: &Decisions) -> Vec<&str> {
    let adopted = step.events.iter().filter(|event| event.reason == "ResultAdopted");
    adopted.map(|event| event.note.as_str()).collect()
}

#[test]
fn a_waiting_job_takes_the_result_over_and_finishes() {
    let mut control = returned(waiting(), &succeeded());
    let step = control.decide(NOW);
    assert_eq!(purposes(&step), ["sync-status"]);
    assert!(notes(&step)[0].contains("worker cluster \"east\""), "{:?}", notes(&step));

    let mut finished = suspended_job();
    finished["metadata"]["resourceVersion"] = json!("70");
    finished["status"] = succeeded();
    done(&mut control, &step, "sync-status", finished, NOW);
    let reserved = step.orders.iter().find(|order| order.ticket.purpose.name() == "reserve");
    if let Some(order) = reserved {
        let ticket = order.ticket.clone();
        control.answered(&ticket, WriteOutcome::Unknown("lost".into()), NOW);
    }
    let later = NOW + std::time::Duration::from_secs(60);
    let step = control.decide(later);
    assert_eq!(purposes(&step), ["finish"]);
    assert_eq!(notes(&step), [""; 0], "the Event is published once");
    let mut over = waiting();
    over["metadata"]["resourceVersion"] = json!("71");
    over["status"]["conditions"] =
        json!([{"type": "Finished", "status": "True", "reason": "Succeeded"}]);
    done(&mut control, &step, "finish", over, later);
    let step = control.decide(later);
    assert_eq!(purposes(&step), ["job-delete"]);
}

#[test]
fn a_nominated_job_takes_the_result_over_before_anything_is_removed() {
    let mut workload = nominated("60", false);
    workload["metadata"]["annotations"] = json!({EPOCH: "2"});
    let step = returned(workload, &succeeded()).decide(NOW);
    assert_eq!(purposes(&step), ["sync-status"]);
}

#[test]
fn a_failed_or_running_copy_is_removed() {
    let failed = json!({"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]});
    for status in [failed, running()] {
        let step = returned(waiting(), &status).decide(NOW);
        assert_eq!(purposes(&step), ["job-delete"]);
        assert_eq!(notes(&step), [""; 0]);
    }
}

#[test]
fn the_result_of_other_pods_is_not_taken_over() {
    let mut edited = waiting();
    let containers = json!([{"name": "c", "image": "another"}]);
    edited["spec"]["podSets"][0]["template"]["spec"]["containers"] = containers;
    assert_eq!(edited["metadata"]["name"], json!(name()));
    let mut larger = waiting();
    let pods = larger["spec"]["podSets"][0]["count"].as_i64().expect("a count");
    larger["spec"]["podSets"][0]["count"] = json!(pods + 1);
    for other in [edited, larger] {
        let step = returned(other, &succeeded()).decide(NOW);
        assert_eq!(purposes(&step), ["job-delete"]);
        assert_eq!(notes(&step), [""; 0]);
    }
}

#[test]
fn the_result_of_a_copy_that_does_not_name_the_uid_of_its_workload_is_not_taken_over() {
    let (plain, named) = (copies(), stamped(&[("sluice.dev/workload-uid", "wl-1")]));
    for copies in [plain.clone(), (named.0, plain.1), (plain.0, named.1)] {
        let step = returned_with(waiting(), copies, &succeeded()).decide(NOW);
        assert_eq!(purposes(&step), ["job-delete"]);
        assert_eq!(notes(&step), [""; 0]);
    }
}
