//! A slice of an elastic job that is replaced by a larger one.

use super::dispatched::{done, orders};
use super::*;

/// The old slice: 5 of 8 cpus, as the API has it.
fn old() -> Value {
    let mut old = workload();
    old["metadata"] =
        json!({"name": "old", "namespace": "ns", "uid": "old-1", "resourceVersion": "21"});
    old["spec"]["podSets"][0]["count"] = json!(5);
    let held = &mut old["status"]["admission"]["podSetAssignments"][0];
    (held["count"], held["resourceUsage"]) = (json!(5), json!({"cpu": "5"}));
    old
}

/// The new slice, of all 8 cpus, with quota or without.
fn new(version: &str, holds: bool) -> Value {
    let mut new = workload();
    new["metadata"] = json!({
        "name": "new", "namespace": "ns", "uid": "new-1", "resourceVersion": version,
        "labels": {"kueue.x-k8s.io/job-uid": "job-1"},
        "annotations": {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"},
        "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": "job-1"}],
    });
    new["spec"]["podSets"][0]["count"] = json!(8);
    let held = &mut new["status"]["admission"]["podSetAssignments"][0];
    (held["count"], held["resourceUsage"]) = (json!(8), json!({"cpu": "8"}));
    if !holds {
        new["status"] = json!({});
    }
    new
}

fn about(step: &Decisions, name: &str) -> Vec<String> {
    let own = |order: &&Order| *order.ticket.target.key.name == *name;
    step.orders.iter().filter(own).map(|order| order.ticket.purpose.to_string()).collect()
}

#[test]
fn the_old_slice_is_finished_once_the_quota_of_the_new_one_is_written() {
    let mut control = control_of_workloads(&[old(), new("22", false)]);
    let step = control.decide(NOW);
    assert_eq!((about(&step, "new"), about(&step, "old")), (vec!["reserve".to_owned()], vec![]));
    done(&mut control, &step, "reserve", new("30", true), NOW);
    let step = control.decide(NOW);
    assert_eq!(about(&step, "old"), ["finish"], "{:?}", orders(&step));
    let finish = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Finish);
    let body = finish.expect("ordered").write.request().body();
    let written = std::str::from_utf8(body).expect("text");
    let message = "Replaced to accommodate a workload (UID: new-1, JobUID: job-1) due to workload slice aggregation";
    assert!(written.contains(message) && written.contains("WorkloadSliceReplaced"), "{written}");
    let mut over = old();
    over["metadata"]["resourceVersion"] = json!("31");
    let finished = json!({"type": "Finished", "status": "True", "reason": "WorkloadSliceReplaced", "message": message});
    over["status"]["conditions"].as_array_mut().expect("conditions").push(finished);
    done(&mut control, &step, "finish", over, NOW);
    let step = control.decide(NOW);
    assert_eq!((about(&step, "new"), about(&step, "old")), (vec![], vec![]));
    assert!(step.events.iter().any(|one| one.note == message), "{:?}", step.events);
}

#[test]
fn the_old_slice_finishes_after_a_restart_in_any_order_of_lists() {
    for both in [[old(), new("30", true)], [new("30", true), old()]] {
        let step = control_of_workloads(&both).decide(NOW);
        assert_eq!((about(&step, "old"), about(&step, "new")), (vec!["finish".to_owned()], vec![]));
    }
}

fn evicted(mut slice: Value) -> Value {
    let condition =
        json!({"type": "Evicted", "status": "True", "reason": "Preempted", "message": ""});
    slice["status"]["conditions"].as_array_mut().expect("conditions").push(condition);
    slice
}

#[test]
fn only_an_admitted_slice_finishes_an_evicted_one() {
    for (admitted, expected) in [(true, true), (false, false)] {
        let mut taker = new("30", true);
        if !admitted {
            let conditions = taker["status"]["conditions"].as_array_mut().expect("conditions");
            conditions.retain(|one| one["type"] != "Admitted");
            taker["status"]["admissionChecks"] = json!([{
                "name": "capacity", "state": "Pending", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]);
        }
        let step = control_of_workloads(&[evicted(old()), taker]).decide(NOW);
        assert_eq!(
            about(&step, "old").contains(&"finish".to_owned()),
            expected,
            "{:?}",
            orders(&step)
        );
    }
}

#[test]
fn the_old_slice_stays_while_the_new_one_is_evicted() {
    let step = control_of_workloads(&[old(), evicted(new("30", true))]).decide(NOW);
    assert!(!about(&step, "old").contains(&"finish".to_owned()), "{:?}", orders(&step));
}
