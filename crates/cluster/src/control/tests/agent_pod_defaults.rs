//! LimitRanges and RuntimeClasses of a worker, which complete the requests of the pods that clones make there
//! (docs/reference/dispatch.md §2, §4).

use runtime::watch::Unavailable;

use super::{assigned_nodes::Worker, *};

/// A worker with one node of four cpus.
fn worker() -> Worker {
    Worker::new(&[("n1", 4)])
}

/// Clones of one pod without requests, and their Jobs.
fn dispatch_without_requests(worker: &mut Worker, names: &[&str]) {
    for name in names {
        worker.dispatch(name, 1, 0, &json!({"containers": [{"name": "main"}]}));
    }
    worker.settle();
}

fn limit_range(worker: &mut Worker, limits: &Value) {
    worker.version += 1;
    let range = json!({
        "metadata": {"name": "r", "namespace": "ns", "resourceVersion": worker.version.to_string()},
        "spec": {"limits": [limits]},
    });
    worker.control.observe(AgentInput::LimitRange(Change::Apply(shared(range))), NOW);
}

fn default_request(worker: &mut Worker, cpu: &str) {
    limit_range(worker, &json!({"type": "Container", "defaultRequest": {"cpu": cpu}}));
}

fn started(worker: &Worker, names: [&str; 2]) -> [bool; 2] {
    names.map(|name| worker.is_started(name))
}

#[test]
fn pods_request_what_a_limit_range_of_the_worker_sets() {
    let mut worker = worker();
    default_request(&mut worker, "3");
    dispatch_without_requests(&mut worker, &["a", "b"]);
    assert_eq!(started(&worker, ["a", "b"]), [true, false]);
    default_request(&mut worker, "1");
    worker.settle();
    assert!(worker.is_started("b"), "a pending clone is tried again");
}

#[test]
fn pods_take_the_overhead_of_their_runtime_class() {
    let mut worker = worker();
    let class = json!({
        "metadata": {"name": "kata", "resourceVersion": "30"},
        "handler": "kata", "overhead": {"podFixed": {"cpu": "1"}},
    });
    worker.control.observe(AgentInput::RuntimeClass(Change::Apply(shared(class))), NOW);
    for name in ["a", "b"] {
        worker.dispatch(name, 1, 2, &json!({"runtimeClassName": "kata"}));
    }
    worker.settle();
    assert_eq!(started(&worker, ["a", "b"]), [true, false]);
}

#[test]
fn a_new_agent_counts_the_pods_to_come_of_admitted_clones_with_defaults() {
    let mut worker = worker();
    default_request(&mut worker, "3");
    dispatch_without_requests(&mut worker, &["a"]);
    assert!(worker.is_started("a"));
    // Its pod does not exist yet. The clone is listed before the LimitRange.
    worker.control =
        AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
    worker.list(vec![]);
    default_request(&mut worker, "3");
    worker.dispatch("b", 1, 2, &json!({}));
    worker.settle();
    assert!(!worker.is_started("b"));
}

/// Else it would stay: what is pending leaves no worker by itself.
#[test]
fn a_clone_whose_pods_violate_a_limit_range_starts_and_its_pods_are_refused() {
    for limits in [
        json!({"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "4"}}),
        json!({"type": "Container", "default": {"cpu": "1"}}),
    ] {
        let mut worker = worker();
        limit_range(&mut worker, &limits);
        worker.dispatch("a", 1, 2, &json!({}));
        worker.settle();
        assert!(worker.is_started("a"), "{limits}");
    }
}

#[test]
fn an_agent_without_the_right_to_read_them_counts_the_templates_alone() {
    let mut worker = worker();
    default_request(&mut worker, "3");
    dispatch_without_requests(&mut worker, &["a", "b"]);
    let removed = vec![Key { namespace: Some("ns".into()), name: "r".into() }];
    let forbidden = Change::Unavailable { reason: Unavailable::Forbidden, removed };
    worker.control.observe(AgentInput::LimitRange(forbidden), NOW);
    worker.settle();
    assert_eq!(started(&worker, ["a", "b"]), [true, true]);
}
