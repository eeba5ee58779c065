//! Preemption gates of a Workload. Source: docs/reference/kueue.md §2.8.

use crds::{names::gates::MULTI_KUEUE, v1beta2::Workload};

use crate::IndexConfig;

/// Whether a preemption gate is closed. A gate without a status is closed, so a Workload can be created with a closed
/// gate. Beside an agent nothing opens the gates that a manager has copied from its own Workload.
pub(super) fn is_preemption_gated(config: &IndexConfig, workload: &Workload) -> bool {
    let is_open = |name: &str| workload.status.open_gate(name).is_some();
    let counts = |name: &str| config.agent.is_none() || name == MULTI_KUEUE;
    workload.spec.preemption_gates.iter().any(|gate| counts(&gate.name) && !is_open(&gate.name))
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
            let object = workload(json!({
                "spec": {"preemptionGates": named}, "status": {"preemptionGates": known},
            }));
            is_preemption_gated(&IndexConfig::default(), &object)
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
