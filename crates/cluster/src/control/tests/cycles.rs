//! Every head is evaluated, however many are refused before it.

use super::dispatched::orders;
use super::*;

/// A Workload of so many cpus; its number is its place in line.
fn waiting(number: usize, cpus: usize) -> Value {
    let mut one = workload();
    one["metadata"] = json!({
        "name": format!("w{number}"), "namespace": "ns", "uid": format!("u{number}"), "resourceVersion": "21",
        "creationTimestamp": format!("2026-01-01T00:00:{number:02}Z"),
    });
    one["spec"]["podSets"][0]["count"] = json!(cpus);
    one["status"] = json!({});
    one
}

/// What is ordered at once when these wait for 8 cpus, in a queue of this strategy.
fn first_orders(strategy: &str, workloads: &[Value]) -> Vec<String> {
    let mut control = ManagerControl::new(settings());
    for mut input in lists() {
        match &mut input {
            ManagerInput::Workload(change) => *change = list(workloads.to_vec()),
            ManagerInput::Job(_, change) => *change = jobs(vec![]),
            ManagerInput::ClusterQueue(Change::Reset { objects, .. }) => {
                Arc::make_mut(&mut objects[0]).spec.queueing_strategy = strategy.to_owned();
            }
            _ => {}
        }
        control.observe(input, NOW);
    }
    orders(&control.decide(NOW))
}

#[test]
fn a_workload_that_fits_is_admitted_behind_any_number_of_refused_heads() {
    for n_refused in [1, 8, 9, 40] {
        // No two are alike, so that none is refused because another was.
        let mut all: Vec<Value> =
            (0..n_refused).map(|number| waiting(number, 9 + number)).collect();
        all.push(waiting(n_refused, 2));
        assert_eq!(first_orders("BestEffortFIFO", &all), ["hub reserve"], "{n_refused}");
        assert_eq!(first_orders("StrictFIFO", &all), [""; 0], "the first keeps the others waiting");
    }
}
