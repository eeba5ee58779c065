//! A clone on a thin worker one of whose pods finds no node.

use super::*;

fn pod(reason: &str) -> Value {
    json!({
        "metadata": {
            "name": "train-1", "namespace": "ns", "resourceVersion": "30",
            "labels": {"kueue.x-k8s.io/multikueue-worker-workload-pod": "true"},
            "annotations": {"kueue.x-k8s.io/workload": "job-train"},
        },
        "spec": {"containers": []},
        "status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": reason, "message": "0/1 nodes",
            "lastTransitionTime": "1970-01-01T00:00:10Z",
        }]},
    })
}

fn evictions(step: &Decisions) -> usize {
    step.orders.iter().filter(|order| order.ticket.purpose == Purpose::Evict).count()
}

#[test]
fn a_clone_is_evicted_when_a_pod_is_unschedulable_for_a_minute() {
    for (reason, evicted) in [("Unschedulable", 1), ("SchedulingGated", 0)] {
        let mut control = AgentControl::new(AgentSettings::new(AgentPolicy::default()));
        let mut clone = workload();
        clone["metadata"]["ownerReferences"] = json!([]);
        let lists = [
            AgentInput::Node(list(vec![])),
            AgentInput::Pod(list(vec![pod(reason)])),
            AgentInput::Capacity(list(vec![])),
            AgentInput::Job(Change::Reset { objects: vec![], removed: vec![] }),
            AgentInput::Workload(list(vec![clone])),
        ];
        lists.into_iter().for_each(|list| control.observe(list, NOW));
        assert_eq!(evictions(&control.decide(NOW)), 0);
        let at = |second| NOW + jiff::SignedDuration::from_secs(second);
        assert_eq!(evictions(&control.decide(at(69))), 0, "{reason}");
        assert_eq!(evictions(&control.decide(at(70))), evicted, "{reason}");
    }
}
