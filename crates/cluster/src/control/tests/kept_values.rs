//! Workers that accept a change of a copy and keep the former value, as a webhook there may (docs/reference/multikueue.md §2.3).

use jiff::ToSpan;

use super::{
    dispatched::{copies, done, on_east, priority_raised, with_priority},
    *,
};

/// The clone in this version, as it was before the priority of the Workload changed.
fn former_clone(version: &str) -> Value {
    let (mut clone, _) = copies();
    clone["metadata"]["resourceVersion"] = json!(version);
    clone
}

#[test]
fn a_priority_that_a_worker_keeps_back_is_not_written_again_at_once() {
    let (mut control, step) = priority_raised();
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
    let (mut control, step) = priority_raised();
    control.observe(with_priority("71", 200), NOW);
    let mut clone = former_clone("80");
    clone["spec"]["priority"] = json!(100);
    done(&mut control, &step, "priority", clone, NOW);
    assert_eq!(on_east(&control.decide(NOW)), ["east priority"], "the worker took the first one");
}
