//! Two ClusterQueues reclaim from one Workload in the same cycle: what is measured of it.

use super::{cluster::Cluster, measurement::Measurement, *};

/// A ClusterQueue of the cohort `ml` with so many cpus, which reclaims from any Workload, and its LocalQueue.
fn queue(cluster: &mut Cluster, name: &str, cpus: u32) {
    let api = "kueue.x-k8s.io/v1beta2";
    let queue = json!({
        "apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": name, "resourceVersion": "40"},
        "spec": {
            "cohortName": "ml", "namespaceSelector": {}, "preemption": {"reclaimWithinCohort": "Any"},
            "resourceGroups": [{
                "coveredResources": ["cpu"],
                "flavors": [{"name": "default", "resources": [
                    {"name": "cpu", "nominalQuota": cpus.to_string()},
                ]}],
            }],
        },
    });
    let local = json!({
        "apiVersion": api, "kind": "LocalQueue", "spec": {"clusterQueue": name},
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "41"},
    });
    cluster.observe(ManagerInput::ClusterQueue(Change::Apply(shared(queue))));
    cluster.observe(ManagerInput::LocalQueue(Change::Apply(shared(local))));
}

/// What the first cycle measures in which both reclaim.
fn measured(gates: &str) -> Vec<Measurement> {
    let gates = Gates::parse(gates).expect("gates");
    let settings = ManagerSettings::new(&Configuration::default(), &gates, &kinds(), false);
    let mut cluster = Cluster::with(settings);
    queue(&mut cluster, "guests", 0);
    queue(&mut cluster, "one", 2);
    queue(&mut cluster, "two", 2);
    cluster.workload("guest", 4, &json!({"spec": {"queueName": "guests"}})).settle();
    cluster.workload("a", 2, &json!({"spec": {"queueName": "one"}}));
    cluster.workload("b", 2, &json!({"spec": {"queueName": "two"}}));
    cluster.measurements.clear();
    let step = cluster.control.decide(cluster.now);
    cluster.take(step);
    let about_preemption = |one: &Measurement| {
        matches!(one, Measurement::PreemptionSkips { .. } | Measurement::TargetsRecomputed { .. })
    };
    let mut all = std::mem::take(&mut cluster.measurements);
    all.retain(about_preemption);
    all
}

#[test]
fn overlapping_targets_are_counted_by_what_became_of_them() {
    let fits_later = |queue: &str| Measurement::TargetsRecomputed {
        cluster_queue: queue.to_owned(),
        result: "deferred_fit",
    };
    let all = measured("");
    assert!(all.contains(&fits_later("two")), "{all:?}");
    assert!(!all.iter().any(|one| matches!(one, Measurement::PreemptionSkips { .. })), "{all:?}");
    let skips = |count| Measurement::PreemptionSkips { cluster_queue: "two".to_owned(), count };
    let all = measured("RecomputeAssignmentUponPreemptionTargetsOverlap=false");
    assert_eq!(all.first(), Some(&skips(1)), "{all:?}");
}
