//! Reclaimable pods of a Workload that was dispatched before (docs/reference/dispatch.md §5).

use super::{
    dispatched::{connect, copies, dispatching, done, hub_job, hub_workload, linked, running},
    *,
};

/// A manager whose Job of this epoch has a copy in which so many pods have succeeded. The Job shows one, which may be that of an earlier copy.
fn dispatched(epoch: &str, in_copy: u32) -> ManagerControl {
    let with_succeeded = |count: u32| {
        let mut status = running();
        (status["active"], status["succeeded"]) = (json!(1), json!(count));
        status["ready"] = json!(1);
        status
    };
    let (mut clone, mut copy) = copies();
    for object in [&mut clone, &mut copy] {
        object["metadata"]["annotations"]["sluice.dev/epoch"] = json!(epoch);
    }
    copy["status"] = with_succeeded(in_copy);
    let mut workload = hub_workload();
    workload["metadata"]["annotations"] = json!({"sluice.dev/epoch": epoch});
    let mut control = dispatching(&hub_job("20", false, &with_succeeded(1)), &[workload]);
    connect(&mut control, vec![clone], vec![copy]);
    control
}

fn reclaimed(step: &Decisions) -> Option<Value> {
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Reclaim)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    Some(body["status"]["reclaimablePods"].clone())
}

#[test]
fn only_pods_that_ended_in_the_present_copy_are_reclaimable() {
    assert_eq!(reclaimed(&dispatched("2", 0).decide(NOW)), None, "an earlier copy had that pod");
    let one = json!([{"name": "main", "count": 1}]);
    assert_eq!(reclaimed(&dispatched("2", 1).decide(NOW)), Some(one.clone()));
    assert_eq!(reclaimed(&dispatched("1", 1).decide(NOW)), Some(one), "there was no other copy");
}

#[test]
fn reclaimable_pods_are_written_once() {
    let mut control = dispatched("2", 1);
    let step = control.decide(NOW);
    let mut workload = hub_workload();
    workload["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    workload["metadata"]["resourceVersion"] = json!("71");
    workload["status"]["reclaimablePods"] = json!([{"name": "main", "count": 1}]);
    done(&mut control, &step, "reclaim", workload, NOW);
    assert_eq!(reclaimed(&control.decide(NOW)), None);
}

#[test]
fn a_worker_that_is_not_reached_reclaims_nothing() {
    let mut control = dispatched("2", 1);
    control.observe(linked(false), NOW);
    assert_eq!(reclaimed(&control.decide(NOW)), None);
}

#[test]
fn nothing_is_reclaimable_for_an_evicted_workload() {
    let mut control = dispatched("2", 1);
    let mut workload = hub_workload();
    workload["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    workload["metadata"]["resourceVersion"] = json!("71");
    let evicted =
        json!({"type": "Evicted", "status": "True", "reason": "Preempted", "message": ""});
    workload["status"]["conditions"].as_array_mut().expect("a list").push(evicted);
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
    assert_eq!(reclaimed(&control.decide(NOW)), None);
}
