//! LimitRanges and RuntimeClasses, which complete the requests of pods: pending Workloads are tried again with changed ones.

use super::cluster::Cluster;
use super::*;

fn limit_range(version: &str, cpu: &str) -> ManagerInput {
    let range = json!({
        "metadata": {"name": "defaults", "namespace": "ns", "resourceVersion": version},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu}}]},
    });
    ManagerInput::LimitRange(Change::Apply(shared(range)))
}

fn runtime_class(version: &str, cpu: &str) -> ManagerInput {
    let class = json!({
        "metadata": {"name": "kata", "resourceVersion": version},
        "handler": "kata", "overhead": {"podFixed": {"cpu": cpu}},
    });
    ManagerInput::RuntimeClass(Change::Apply(shared(class)))
}

/// A Workload of one pod.
fn with_pod(pod: &Value) -> Value {
    json!({"spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]}})
}

#[test]
fn a_changed_limit_range_wakes_the_workloads_of_its_namespace() {
    let mut cluster = Cluster::new();
    cluster.observe(limit_range("30", "9"));
    cluster.workload("a", 1, &with_pod(&json!({"containers": [{"name": "c"}]}))).settle();
    assert!(!cluster.condition("a", "QuotaReserved").starts_with("True"));
    cluster.observe(limit_range("31", "2")).settle();
    assert!(cluster.condition("a", "QuotaReserved").starts_with("True"));
    let usage = &cluster.workloads["a"]["status"]["admission"]["podSetAssignments"][0];
    assert_eq!(usage["resourceUsage"]["cpu"], "2");
}

#[test]
fn a_changed_runtime_class_wakes_the_workloads_that_name_it() {
    let mut cluster = Cluster::new();
    cluster.observe(runtime_class("30", "8"));
    let requests = json!({"requests": {"cpu": "1"}});
    let pod = json!({
        "runtimeClassName": "kata", "containers": [{"name": "c", "resources": requests}],
    });
    cluster.workload("a", 1, &with_pod(&pod)).settle();
    assert!(!cluster.condition("a", "QuotaReserved").starts_with("True"));
    cluster.observe(runtime_class("31", "500m")).settle();
    assert!(cluster.condition("a", "QuotaReserved").starts_with("True"));
    let usage = &cluster.workloads["a"]["status"]["admission"]["podSetAssignments"][0];
    assert_eq!(usage["resourceUsage"]["cpu"], "1500m");
}
