//! Preemption gates of a Workload. Source: docs/reference/kueue.md §2.8.

use crds::v1beta2::Workload;

use crate::status::is_gate_open;

/// Whether a preemption gate is closed. A gate without a status is closed, so a Workload can be created with a closed
/// gate.
pub(super) fn is_preemption_gated(workload: &Workload) -> bool {
    let is_open = |name: &str| is_gate_open(&workload.status, name);
    workload.spec.preemption_gates.iter().any(|gate| !is_open(&gate.name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn workload(value: Value) -> Workload {
        serde_json::from_value(value).expect("a Workload")
    }

    #[test]
    fn a_preemption_gate_is_closed_unless_its_status_is_open() {
        let gates = |named: Value, known: Value| {
            is_preemption_gated(&workload(json!({
                "spec": {"preemptionGates": named}, "status": {"preemptionGates": known},
            })))
        };
        let one = json!([{"name": "a"}]);
        let two = json!([{"name": "a"}, {"name": "b"}]);
        let state = |name: &str, position: &str| json!({"name": name, "position": position});
        for (named, known, gated) in [
            (json!([]), json!([]), false),
            (json!([]), json!([state("a", "Closed")]), false),
            (one.clone(), json!([]), true),
            (one.clone(), json!([state("a", "Closed")]), true),
            (one.clone(), json!([state("b", "Open")]), true),
            (one, json!([state("a", "Open")]), false),
            (two.clone(), json!([state("a", "Open")]), true),
            (two.clone(), json!([state("a", "Open"), state("b", "Closed")]), true),
            (two, json!([state("b", "Open"), state("a", "Open")]), false),
        ] {
            assert_eq!(gates(named.clone(), known.clone()), gated, "{named} {known}");
        }
    }
}
