//! Workers that accept a change of a copy and keep the former value, as a webhook there may (docs/reference/multikueue.md §2.3).

use jiff::ToSpan;

use super::{
    dispatched::{connect, copies, dispatching, done, hub_job, hub_workload, orders, running},
    *,
};

/// The orders for `east`.
fn on_east(step: &Decisions) -> Vec<String> {
    orders(step).into_iter().filter(|order| order.starts_with("east")).collect()
}

/// The clone in this version, as it was before the priority of the Workload changed.
fn former_clone(version: &str) -> Value {
    let (mut clone, _) = copies();
    clone["metadata"]["resourceVersion"] = json!(version);
    clone
}

/// The hub's Workload with this priority.
fn with_priority(version: &str, priority: i32) -> ManagerInput {
    let mut raised = hub_workload();
    raised["metadata"]["resourceVersion"] = json!(version);
    raised["spec"]["priority"] = json!(priority);
    ManagerInput::Workload(Change::Apply(shared(raised)))
}

#[test]
fn a_priority_that_a_worker_keeps_back_is_not_written_again_at_once() {
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control.decide(NOW);
    control.observe(with_priority("70", 100), NOW);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east priority"]);
    done(&mut control, &step, "priority", former_clone("80"), NOW);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0], "it would be kept again");
    assert_eq!(on_east(&control.decide(NOW + 599.seconds())), [""; 0]);
    // Another priority is another change.
    control.observe(with_priority("71", 200), NOW + 599.seconds());
    let step = control.decide(NOW + 599.seconds());
    assert_eq!(on_east(&step), ["east priority"]);
    done(&mut control, &step, "priority", former_clone("81"), NOW + 599.seconds());
    assert_eq!(on_east(&control.decide(NOW + 600.seconds())), [""; 0]);
    assert_eq!(on_east(&control.decide(NOW + 1200.seconds())), ["east priority"], "once more");
}

#[test]
fn a_priority_that_changed_again_while_it_was_written_is_written() {
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control.decide(NOW);
    control.observe(with_priority("70", 100), NOW);
    let step = control.decide(NOW);
    control.observe(with_priority("71", 200), NOW);
    let mut clone = former_clone("80");
    clone["spec"]["priority"] = json!(100);
    done(&mut control, &step, "priority", clone, NOW);
    assert_eq!(on_east(&control.decide(NOW)), ["east priority"], "the worker took the first one");
}
