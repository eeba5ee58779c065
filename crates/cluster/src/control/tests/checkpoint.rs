//! A Workload that stays with the cluster of its checkpoint, from its withdrawal to its next nomination.

use jiff::ToSpan;

use super::{
    dispatched::{connect, dispatching, hub_job, hub_workload, nominated, orders},
    gang_reservation::{manager, waiting},
    *,
};

/// The body of the order for this purpose.
fn body(step: &Decisions, purpose: &str) -> Value {
    let order = step.orders.iter().find(|order| order.ticket.purpose.name() == purpose);
    let order = order.unwrap_or_else(|| panic!("{purpose} was not ordered: {:?}", orders(step)));
    serde_json::from_slice(order.write.request().body()).expect("JSON")
}

fn evicted(mut workload: Value) -> Value {
    let evicted =
        json!({"type": "Evicted", "status": "True", "reason": "Preempted", "message": ""});
    workload["status"]["conditions"].as_array_mut().expect("a list").push(evicted);
    workload
}

#[test]
fn a_withdrawal_records_the_cluster_together_with_the_next_epoch() {
    let recorded = json!({"sluice.dev/epoch": "2", "sluice.dev/last-cluster": "east"});
    // A cluster that did not admit the Workload has no checkpoint, and an earlier record stays.
    let unchanged = json!({"sluice.dev/epoch": "2"});
    for (workload, expected) in
        [(evicted(hub_workload()), recorded), (nominated("22", true), unchanged)]
    {
        let mut control = dispatching(&hub_job("20", true, &json!({})), &[workload]);
        connect(&mut control, vec![], vec![]);
        let step = control.decide(NOW);
        assert_eq!(body(&step, "raise-epoch")["metadata"]["annotations"], expected);
    }
}

/// The manager of the worker `east`, which has room, and a Workload that was withdrawn from this cluster.
fn withdrawn_from(last: &str, value: &str) -> ManagerControl {
    let mut control = manager(&json!({}));
    let mut workload = waiting("train", 1, 1);
    workload["metadata"]["annotations"] =
        json!({"sluice.dev/checkpoint": value, "sluice.dev/last-cluster": last});
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
    control
}

#[test]
fn a_workload_goes_back_to_its_checkpoint_or_waits_with_a_message_that_names_the_cluster() {
    for (last, value) in [("east", "required"), ("west", "preferred"), ("west", "anywhere")] {
        let step = withdrawn_from(last, value).decide(NOW);
        let clusters = &body(&step, "reserve")["status"]["nominatedClusterNames"];
        assert_eq!(*clusters, json!(["east"]), "{last} {value}");
    }
    let mut control = withdrawn_from("west", "required");
    assert!(!orders(&control.decide(NOW)).contains(&"hub reserve".to_owned()));
    let step = control.decide(NOW + 10.seconds());
    let condition = body(&step, "pending")["status"]["conditions"][0].clone();
    assert_eq!(condition["type"], "QuotaReserved");
    assert_eq!(
        condition["message"],
        "no cluster has room: west: is not in the MultiKueueConfig; east: the checkpoint that its job requires is on west"
    );
}
