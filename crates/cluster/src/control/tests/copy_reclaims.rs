//! Reclaimable pods of a Workload that was dispatched before (docs/reference/dispatch.md §5).

use super::{
    dispatched::{connect, copies, dispatching, done, hub_job, hub_workload, linked, running},
    *,
};

/// A manager with a Job of this epoch and a copy of it in which so many pods have succeeded. The Job shows one, which may be that
/// of an earlier copy.
fn dispatched(epoch: &str, in_copy: u32) -> ManagerControl {
    dispatched_with(epoch, in_copy, |_, _| true)
}

/// The same, after these changes of clone and copy. The clone is there if they say so.
fn dispatched_with(
    epoch: &str,
    in_copy: u32,
    change: impl Fn(&mut Value, &mut Value) -> bool,
) -> ManagerControl {
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
    let has_clone = change(&mut clone, &mut copy);
    connect(&mut control, if has_clone { vec![clone] } else { vec![] }, vec![copy]);
    control
}

fn reclaim(step: &Decisions) -> Option<Value> {
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Reclaim)?;
    Some(serde_json::from_slice(order.write.request().body()).expect("JSON"))
}

fn reclaimed(step: &Decisions) -> Option<Value> {
    Some(reclaim(step)?["status"]["reclaimablePods"].clone())
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

/// A Job that was made again, while the copy of the earlier one holds its name on the recorded cluster.
#[test]
fn pods_that_ended_in_the_copy_of_another_workload_are_not_reclaimable() {
    for has_clone in [true, false] {
        let mut control = dispatched_with("2", 1, |_, copy| {
            let annotations = &mut copy["metadata"]["annotations"];
            annotations["kueue.x-k8s.io/prebuilt-workload-name"] = json!("job-train-earlier");
            has_clone
        });
        assert_eq!(reclaimed(&control.decide(NOW)), None, "with a clone: {has_clone}");
    }
}

#[test]
fn a_copy_of_an_earlier_epoch_reclaims_nothing() {
    let mut control = dispatched_with("2", 1, |_, copy| {
        copy["metadata"]["annotations"]["sluice.dev/epoch"] = json!("1");
        true
    });
    assert_eq!(reclaimed(&control.decide(NOW)), None);
}

/// The Job shows one succeeded pod and the copy two: the quota follows what the Job shows.
#[test]
fn a_copy_with_a_status_that_is_not_copied_reclaims_nothing() {
    let mut control = dispatched("2", 2);
    assert_eq!(reclaimed(&control.decide(NOW)), None);
}

/// A write that is applied late must not lower the quota of the next dispatch.
#[test]
fn reclaimable_pods_of_a_dispatched_job_are_written_to_the_observed_version() {
    for epoch in ["1", "2"] {
        let written = reclaim(&dispatched(epoch, 1).decide(NOW)).expect("one pod has ended");
        let version = &hub_workload()["metadata"]["resourceVersion"];
        assert_eq!(written["metadata"]["resourceVersion"], *version, "epoch {epoch}");
        assert!(written["metadata"]["uid"].is_string());
    }
}
