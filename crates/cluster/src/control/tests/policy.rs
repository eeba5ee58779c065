//! Fields of a DispatchPolicy that concern running work (docs/reference/dispatch.md §3).

use jiff::ToSpan;

use super::{
    dispatched::{dispatched_to_east, linked},
    *,
};

/// A manager with a Workload that runs on `east`, under a policy of this spec.
pub(super) fn running_under(policy: &Value) -> ManagerControl {
    let mut control = dispatched_to_east();
    control.decide(NOW);
    let config = json!({
        "metadata": {"name": "all", "resourceVersion": "40", "annotations": {"sluice.dev/policy": "p"}},
        "spec": {"clusters": ["east"]},
    });
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), NOW);
    let policy = json!({"metadata": {"name": "p", "resourceVersion": "41"}, "spec": policy});
    control.observe(ManagerInput::DispatchPolicy(Change::Apply(shared(policy))), NOW);
    control
}

/// The body of the write that dispatches the Workload again, if there is one.
pub(super) fn retried(control: &mut ManagerControl, now: Timestamp) -> Option<String> {
    let step = control.decide(now);
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Retry)?;
    Some(String::from_utf8_lossy(order.write.request().body()).into_owned())
}

#[test]
fn running_work_leaves_a_drained_cluster_at_the_deadline() {
    let deadline = (NOW + 10.minutes()).to_string();
    let drain = json!({"clusters": [{"name": "east", "drain": {"deadline": deadline}}]});
    let mut control = running_under(&drain);
    let wake = control.decide(NOW).wake.expect("the deadline");
    assert!(wake <= NOW + 10.minutes(), "{wake}");
    assert_eq!(retried(&mut control, NOW + 599.seconds()), None);
    let message = retried(&mut control, NOW + 600.seconds()).expect("it is withdrawn");
    assert!(message.contains("Worker cluster \\\"east\\\" is drained"), "{message}");
    let stays = json!({"clusters": [{"name": "east", "drain": {}}]});
    assert_eq!(retried(&mut running_under(&stays), NOW + 100.hours()), None, "without a deadline");
}

#[test]
fn the_policy_says_when_a_worker_is_lost() {
    let policy = json!({"disconnection": {"lostAfter": "90s"}});
    let mut control = running_under(&policy);
    control.observe(linked(false), NOW);
    assert_eq!(retried(&mut control, NOW + 89.seconds()), None);
    let message = retried(&mut control, NOW + 90.seconds()).expect("it is lost");
    assert!(message.contains("Admitting remote lost"), "{message}");
}
